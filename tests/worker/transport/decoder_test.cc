// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/decoder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "worker/transport/outbox.h"

namespace disttrain::transport {
namespace {

using ::testing::HasSubstr;

MutableBuffer MakeBuffer(size_t size) {
  std::shared_ptr<char[]> memory(new char[size]);
  return {memory.get(), size, memory};
}

std::string Pattern(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

Message MakeMessage(std::string header, const std::vector<std::string>& parts) {
  Message message;
  message.header = std::move(header);
  for (const std::string& part : parts) {
    auto owner = std::make_shared<std::string>(part);
    message.buffers.push_back({owner->data(), owner->size(), owner});
  }
  return message;
}

// Everything that `outbox` has, as it goes over the wire.
std::string Drain(Outbox& outbox) {
  std::string wire;
  Outbox::Garbage garbage;
  while (!outbox.empty()) {
    iovec parts[8];
    const size_t count = outbox.Gather(absl::MakeSpan(parts));
    size_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      wire.append(static_cast<char*>(parts[i].iov_base), parts[i].iov_len);
      bytes += parts[i].iov_len;
    }
    outbox.Consume(bytes, garbage);
  }
  return wire;
}

std::string Text(const ReceivedMessage& message) {
  std::string text = message.header;
  for (const MutableBuffer& buffer : message.buffers) {
    text += '|';
    text.append(static_cast<char*>(buffer.data), buffer.size);
  }
  return text;
}

// What came out of a decoder.
struct Decoded {
  std::vector<std::string> messages;
  absl::Status status;
  bool goodbye = false;
  bool at_boundary = false;
};

Decoded Feed(const std::string& wire, size_t step, const Limits& limits = {}) {
  Decoder decoder(limits, true);
  Decoded decoded;
  size_t done = 0;
  while (done < wire.size()) {
    const absl::Span<char> target = decoder.Target();
    const size_t bytes = std::min({target.size(), step, wire.size() - done});
    std::memcpy(target.data(), wire.data() + done, bytes);
    done += bytes;
    absl::StatusOr<Decoder::Event> event = decoder.Advance(bytes);
    if (event.ok() && std::holds_alternative<Decoder::NeedBuffers>(*event)) {
      std::vector<MutableBuffer> buffers;
      for (const uint64_t size : decoder.sizes()) {
        buffers.push_back(MakeBuffer(size));
      }
      event = decoder.SetBuffers(std::move(buffers));
    }
    if (!event.ok()) {
      decoded.status = event.status();
      return decoded;
    }
    if (auto* message = std::get_if<ReceivedMessage>(&*event)) {
      decoded.messages.push_back(Text(*message));
    }
    decoded.goodbye |= std::holds_alternative<Decoder::Goodbye>(*event);
  }
  decoded.at_boundary = decoder.AtBoundary();
  return decoded;
}

std::string WireOf(std::vector<Message> messages) {
  Outbox outbox;
  for (Message& message : messages) outbox.Push(std::move(message));
  return Drain(outbox);
}

TEST(Decoder, MessagesComeBackWhateverTheReadsCut) {
  const std::vector<std::string> expected = {"", "head", "|", "a|b||cc",
                                             std::string(5000, 'x') + "|tail"};
  std::vector<Message> messages;
  messages.push_back(MakeMessage("", {}));
  messages.push_back(MakeMessage("head", {}));
  messages.push_back(MakeMessage("", {""}));
  messages.push_back(MakeMessage("a", {"b", "", "cc"}));
  messages.push_back(MakeMessage(std::string(5000, 'x'), {"tail"}));
  const std::string wire = WireOf(std::move(messages));
  for (const size_t step : {1, 2, 3, 7, 16, 100, 100000}) {
    const Decoded decoded = Feed(wire, step);
    EXPECT_TRUE(decoded.status.ok()) << decoded.status;
    EXPECT_EQ(decoded.messages, expected) << "step " << step;
    EXPECT_TRUE(decoded.at_boundary);
  }
}

TEST(Decoder, LargeMessageIsCutAndSmallOnesPassIt) {
  const std::string bytes = Pattern(1'000'000, 1);
  Outbox outbox;
  outbox.Push(MakeMessage("large", {bytes}));
  Outbox::Garbage garbage;
  iovec parts[8];
  size_t count = outbox.Gather(absl::MakeSpan(parts));
  std::string wire;
  for (size_t i = 0; i < count; ++i) {
    wire.append(static_cast<char*>(parts[i].iov_base), parts[i].iov_len);
  }
  EXPECT_LE(wire.size(), kFrameHeaderBytes + kMaxFrameBytes);
  outbox.Push(MakeMessage("small", {}));
  outbox.Consume(wire.size(), garbage);
  wire += Drain(outbox);
  const Decoded decoded = Feed(wire, 65536);
  ASSERT_TRUE(decoded.status.ok()) << decoded.status;
  ASSERT_EQ(decoded.messages.size(), 2u);
  EXPECT_EQ(decoded.messages[0], "small");
  EXPECT_EQ(decoded.messages[1], "large|" + bytes);
}

TEST(Decoder, LargeHeaderIsCutAsWell) {
  const std::string header = Pattern(700'000, 2);
  std::vector<Message> messages;
  messages.push_back(MakeMessage(header, {"x"}));
  const Decoded decoded = Feed(WireOf(std::move(messages)), 4096);
  ASSERT_TRUE(decoded.status.ok()) << decoded.status;
  EXPECT_EQ(decoded.messages, std::vector<std::string>{header + "|x"});
}

TEST(Outbox, EmptyMessagesCountAsWell) {
  Outbox outbox;
  for (int i = 0; i < 100; ++i) outbox.Push(MakeMessage("", {}));
  EXPECT_EQ(outbox.bytes(), 100 * Outbox::kMessageBytes);
  Drain(outbox);
  EXPECT_EQ(outbox.bytes(), 0u);
}

TEST(Outbox, BuffersAreLetGoOnceTheyAreWritten) {
  Outbox outbox;
  Message message = MakeMessage("h", {std::string(100, 'x')});
  const std::weak_ptr<const void> owner = message.buffers[0].owner;
  outbox.Push(std::move(message));
  EXPECT_FALSE(owner.expired());
  Drain(outbox);
  EXPECT_TRUE(owner.expired());
}

TEST(Decoder, EveryTruncatedPrefixIsIncompleteButNoError) {
  std::vector<Message> messages;
  messages.push_back(MakeMessage("head", {"abc", "defg"}));
  const std::string wire = WireOf(std::move(messages));
  for (size_t size = 1; size < wire.size(); ++size) {
    const Decoded decoded = Feed(wire.substr(0, size), 1000);
    EXPECT_TRUE(decoded.status.ok()) << size << ": " << decoded.status;
    EXPECT_TRUE(decoded.messages.empty()) << size;
    EXPECT_FALSE(decoded.at_boundary) << size;
  }
}

TEST(Decoder, FlippedBitsNeverBreakIt) {
  std::vector<Message> messages;
  messages.push_back(MakeMessage("head", {"abc", std::string(300, 'd')}));
  messages.push_back(MakeMessage("second", {}));
  const std::string wire = WireOf(std::move(messages));
  Limits limits;
  limits.header_bytes = 1 << 16;
  limits.message_bytes = 1 << 20;
  std::mt19937 random(20261130);
  for (int round = 0; round < 20000; ++round) {
    std::string broken = wire;
    const int flips = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < flips; ++i) {
      const size_t at = random() % broken.size();
      broken[at] = static_cast<char>(broken[at] ^ (1 << (random() % 8)));
    }
    const Decoded decoded = Feed(broken, 1 + random() % 64, limits);
    EXPECT_LE(decoded.messages.size(), 2u);
  }
}

TEST(Decoder, GoodbyeIsTheEnd) {
  const Decoded decoded = Feed(EncodeFrame(FrameType::kGoodbye, ""), 16);
  EXPECT_TRUE(decoded.status.ok());
  EXPECT_TRUE(decoded.goodbye);
}

TEST(Decoder, ChunkWithoutItsMessageIsAnError) {
  const Decoded decoded = Feed(EncodeFrame(FrameType::kChunk, "abc"), 100);
  EXPECT_THAT(disttrain::Message(decoded.status),
              HasSubstr("without its message"));
}

TEST(Decoder, FrameLongerThanItsMessageIsAnErrorBeforeMemoryIsGiven) {
  const std::vector<uint64_t> sizes = {4};
  const Decoded decoded = Feed(
      EncodeFrame(FrameType::kBegin, EncodeTable(1, sizes) + "habcd!"), 100);
  EXPECT_THAT(disttrain::Message(decoded.status),
              HasSubstr("longer than its message"));
}

TEST(Decoder, SecondLargeMessageAmidOneIsAnErrorBeforeMemoryIsGiven) {
  const std::vector<uint64_t> sizes = {uint64_t{1} << 30};
  FrameHeader second;
  second.type = FrameType::kBegin;
  second.stream = 5;
  second.length = 17;
  const FrameHeaderBytes head = EncodeFrameHeader(second);
  const std::vector<uint64_t> small = {100};
  const std::string wire =
      EncodeFrame(FrameType::kBegin, EncodeTable(1, small) + "hab") +
      std::string(head.data(), head.size()) + EncodeTable(1, sizes) + "h";
  const Decoded decoded = Feed(wire, 100);
  EXPECT_THAT(disttrain::Message(decoded.status),
              HasSubstr("second large message"));
}

TEST(Decoder, HelloComesFirstAndOnlyOnce) {
  const std::string hello =
      EncodeFrame(FrameType::kHello, EncodeHello({1, 0, {0, 0}, {1, 0}, "j"}));
  EXPECT_THAT(disttrain::Message(Feed(hello, 100).status),
              HasSubstr("after the greeting"));
  Decoder stranger(Limits(), false);
  const std::string wire = EncodeFrame(FrameType::kGoodbye, "");
  std::memcpy(stranger.Target().data(), wire.data(), wire.size());
  EXPECT_THAT(disttrain::Message(stranger.Advance(wire.size()).status()),
              HasSubstr("instead of a hello"));
}

TEST(Decoder, BuffersOfTheWrongSizeAreOurError) {
  Decoder decoder(Limits(), true);
  std::vector<Message> messages;
  messages.push_back(MakeMessage("h", {"abc"}));
  const std::string wire = WireOf(std::move(messages));
  size_t done = 0;
  while (true) {
    const absl::Span<char> target = decoder.Target();
    std::memcpy(target.data(), wire.data() + done, target.size());
    done += target.size();
    const auto event = decoder.Advance(target.size());
    ASSERT_TRUE(event.ok());
    if (std::holds_alternative<Decoder::NeedBuffers>(*event)) break;
  }
  std::vector<MutableBuffer> wrong = {MakeBuffer(4)};
  EXPECT_TRUE(absl::IsInternal(decoder.SetBuffers(wrong).status()));
}

}  // namespace
}  // namespace disttrain::transport
