// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/outbox.h"

#include <algorithm>
#include <utility>

#include "worker/transport/frame.h"

namespace disttrain::transport {
namespace {

// Small messages that go to the wire together.
constexpr size_t kMaxBatch = 64;

}  // namespace

void Outbox::Push(Message message) {
  auto outgoing = std::make_shared<Outgoing>();
  outgoing->content = ContentBytes(message);
  outgoing->message = std::move(message);
  outgoing->stream = next_stream_++;
  bytes_ += outgoing->content + kMessageBytes;
  const bool small = outgoing->content <= kSmallBytes;
  (small ? small_ : large_).push_back(std::move(outgoing));
}

void Outbox::PushFirst(std::string bytes) {
  auto keep = std::make_shared<const std::string>(std::move(bytes));
  wire_.push_front(Part{keep->data(), keep->size(), false, 0, keep});
}

void Outbox::PushGoodbye() { goodbye_ = true; }

void Outbox::AddHead(std::shared_ptr<const std::string> bytes) {
  const char* data = bytes->data();
  const size_t size = bytes->size();
  wire_.push_back(Part{data, size, false, 0, std::move(bytes)});
}

void Outbox::CutContent(const std::shared_ptr<Outgoing>& outgoing,
                        uint64_t bytes) {
  const Message& message = outgoing->message;
  outgoing->sent += bytes;
  while (bytes > 0) {
    const bool header = outgoing->region == 0;
    const uint64_t size = header ? message.header.size()
                                 : message.buffers[outgoing->region - 1].size;
    const char* data = header ? message.header.data()
                              : static_cast<const char*>(
                                    message.buffers[outgoing->region - 1].data);
    const uint64_t part = std::min(bytes, size - outgoing->offset);
    if (part > 0) {
      wire_.push_back(Part{data + outgoing->offset, part, true, 0, outgoing});
    }
    bytes -= part;
    outgoing->offset += part;
    if (outgoing->offset == size) {
      ++outgoing->region;
      outgoing->offset = 0;
    }
  }
}

void Outbox::CutBegin(const std::shared_ptr<Outgoing>& outgoing) {
  std::vector<uint64_t> sizes;
  sizes.reserve(outgoing->message.buffers.size());
  for (const ConstBuffer& buffer : outgoing->message.buffers) {
    sizes.push_back(buffer.size);
  }
  const std::string table = EncodeTable(outgoing->message.header.size(), sizes);
  const uint64_t content =
      std::min(outgoing->content, kMaxFrameBytes - table.size());
  FrameHeader frame;
  frame.type = FrameType::kBegin;
  frame.stream = outgoing->stream;
  frame.length = static_cast<uint32_t>(table.size() + content);
  const FrameHeaderBytes head = EncodeFrameHeader(frame);
  outgoing->head.assign(head.data(), head.size());
  outgoing->head += table;
  wire_.push_back(Part{outgoing->head.data(), outgoing->head.size(), false,
                       kMessageBytes, outgoing});
  CutContent(outgoing, content);
}

void Outbox::CutChunk(const std::shared_ptr<Outgoing>& outgoing) {
  const uint64_t content =
      std::min<uint64_t>(outgoing->content - outgoing->sent, kMaxFrameBytes);
  FrameHeader frame;
  frame.type = FrameType::kChunk;
  frame.stream = outgoing->stream;
  frame.length = static_cast<uint32_t>(content);
  const FrameHeaderBytes head = EncodeFrameHeader(frame);
  AddHead(std::make_shared<const std::string>(head.data(), head.size()));
  CutContent(outgoing, content);
}

void Outbox::Refill() {
  for (size_t i = 0; i < kMaxBatch && !small_.empty(); ++i) {
    CutBegin(small_.front());
    small_.pop_front();
  }
  if (!large_.empty()) {
    const std::shared_ptr<Outgoing>& large = large_.front();
    if (large->head.empty()) {
      CutBegin(large);
    } else {
      CutChunk(large);
    }
    if (large->sent == large->content) large_.pop_front();
    return;
  }
  if (goodbye_ && small_.empty()) {
    goodbye_ = false;
    AddHead(std::make_shared<const std::string>(
        EncodeFrame(FrameType::kGoodbye, "")));
  }
}

size_t Outbox::Gather(absl::Span<iovec> parts) {
  if (wire_.empty()) Refill();
  size_t count = 0;
  for (const Part& part : wire_) {
    if (count == parts.size()) break;
    parts[count++] = {const_cast<char*>(part.data), part.size};
  }
  return count;
}

void Outbox::Consume(size_t bytes, Garbage& garbage) {
  while (bytes > 0) {
    Part& part = wire_.front();
    const size_t done = std::min(bytes, part.size);
    bytes -= done;
    if (part.content) bytes_ -= done;
    part.data += done;
    part.size -= done;
    if (part.size > 0) return;
    bytes_ -= part.weight;
    garbage.push_back(std::move(part.keep));
    wire_.pop_front();
  }
}

void Outbox::Clear(Garbage& garbage) {
  for (Part& part : wire_) garbage.push_back(std::move(part.keep));
  for (auto* queue : {&small_, &large_}) {
    for (auto& outgoing : *queue) garbage.push_back(std::move(outgoing));
    queue->clear();
  }
  wire_.clear();
  goodbye_ = false;
  bytes_ = 0;
}

}  // namespace disttrain::transport
