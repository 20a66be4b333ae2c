// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/decoder.h"

#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "proto/runtime/status.h"

namespace disttrain::transport {
namespace {

absl::Status Unexpected(const FrameHeader& frame, const char* when) {
  return absl::DataLossError(
      fmt::format("frame of type {} {}", static_cast<int>(frame.type), when));
}

}  // namespace

void Decoder::StartScratch(Part part, size_t bytes) {
  part_ = part;
  scratch_.resize(bytes);
  filled_ = 0;
}

void Decoder::StartFrame() {
  StartScratch(Part::kFrameHeader, kFrameHeaderBytes);
}

uint64_t Decoder::RegionBytes() const {
  return open_->region == 0 ? open_->message.header.size()
                            : open_->sizes[open_->region - 1];
}

absl::Span<char> Decoder::Region() {
  char* data =
      open_->region == 0
          ? open_->message.header.data()
          : static_cast<char*>(open_->message.buffers[open_->region - 1].data);
  return absl::MakeSpan(data, RegionBytes()).subspan(open_->offset);
}

absl::Span<char> Decoder::Target() {
  if (part_ == Part::kContent) return Region().subspan(0, frame_left_);
  return absl::MakeSpan(scratch_.data(), scratch_.size()).subspan(filled_);
}

absl::StatusOr<Decoder::Event> Decoder::Advance(size_t bytes) {
  DISTTRAIN_CHECK(bytes <= Target().size());
  if (part_ != Part::kFrameHeader) {
    frame_left_ -= static_cast<uint32_t>(bytes);
  }
  if (part_ == Part::kContent) {
    open_->offset += bytes;
    return Settle();
  }
  filled_ += bytes;
  if (filled_ < scratch_.size()) return Event{};
  return OnScratch();
}

absl::StatusOr<Decoder::Event> Decoder::OnScratch() {
  switch (part_) {
    case Part::kFrameHeader:
      return OnFrameHeader();
    case Part::kHello:
      return OnHello();
    case Part::kTablePrefix:
      return OnTablePrefix();
    case Part::kSizes:
      return OnSizes();
    case Part::kContent:
      break;
  }
  DISTTRAIN_CHECK(false);
}

absl::StatusOr<Decoder::Event> Decoder::OnFrameHeader() {
  ASSIGN_OR_RETURN(frame_, DecodeFrameHeader(scratch_));
  frame_left_ = frame_.length;
  const bool hello = frame_.type == FrameType::kHello;
  if (hello == greeted_) {
    return Unexpected(frame_,
                      hello ? "after the greeting" : "instead of a hello");
  }
  return StartPayload();
}

absl::StatusOr<Decoder::Event> Decoder::StartPayload() {
  switch (frame_.type) {
    case FrameType::kHello:
      StartScratch(Part::kHello, frame_.length);
      return Event{};
    case FrameType::kBegin:
      if (large_ && frame_.stream == large_->stream) {
        return Unexpected(frame_, "for a message that has begun already");
      }
      StartScratch(Part::kTablePrefix, kTablePrefixBytes);
      return Event{};
    case FrameType::kChunk:
      if (!large_ || large_->stream != frame_.stream) {
        return Unexpected(frame_, "without its message");
      }
      open_ = std::exchange(large_, std::nullopt);
      return Settle();
    case FrameType::kGoodbye:
      if (large_) return Unexpected(frame_, "amid a message");
      StartFrame();
      return Event{Goodbye{}};
    case FrameType::kRefuse:
      break;
  }
  return Unexpected(frame_, "after the greeting");
}

absl::StatusOr<Decoder::Event> Decoder::OnHello() {
  ASSIGN_OR_RETURN(Hello hello, DecodeHello(scratch_));
  greeted_ = true;
  StartFrame();
  return Event{std::move(hello)};
}

absl::StatusOr<Decoder::Event> Decoder::OnTablePrefix() {
  ASSIGN_OR_RETURN(prefix_,
                   DecodeTablePrefix(scratch_, frame_.length, limits_));
  StartScratch(Part::kSizes, size_t{8} * prefix_.buffers);
  return scratch_.empty() ? OnSizes() : Event{};
}

absl::StatusOr<Decoder::Event> Decoder::OnSizes() {
  ASSIGN_OR_RETURN(std::vector<uint64_t> sizes,
                   DecodeSizes(scratch_, prefix_.header_bytes, limits_));
  const uint64_t content = std::accumulate(sizes.begin(), sizes.end(),
                                           uint64_t{prefix_.header_bytes});
  if (frame_left_ > content) {
    return Unexpected(frame_, "is longer than its message");
  }
  if (large_ && frame_left_ < content) {
    return Unexpected(frame_, "begins a second large message");
  }
  open_.emplace();
  open_->stream = frame_.stream;
  open_->sizes = std::move(sizes);
  open_->message.header.resize(prefix_.header_bytes);
  return Settle();
}

absl::StatusOr<Decoder::Event> Decoder::Settle() {
  while (open_->offset == RegionBytes()) {
    if (open_->region == 0 && !open_->has_buffers && !open_->sizes.empty()) {
      return Event{NeedBuffers{}};
    }
    if (open_->region == open_->sizes.size()) {
      if (frame_left_ > 0) {
        return Unexpected(frame_, "is longer than its message");
      }
      Event event = std::move(open_->message);
      open_.reset();
      StartFrame();
      return event;
    }
    ++open_->region;
    open_->offset = 0;
  }
  if (frame_left_ > 0) {
    part_ = Part::kContent;
    return Event{};
  }
  large_ = std::exchange(open_, std::nullopt);
  StartFrame();
  return Event{};
}

absl::StatusOr<Decoder::Event> Decoder::SetBuffers(
    std::vector<MutableBuffer> buffers) {
  DISTTRAIN_CHECK(open_ && !open_->has_buffers);
  if (buffers.size() != open_->sizes.size()) {
    return absl::InternalError(fmt::format("{} buffers were given, expected {}",
                                           buffers.size(),
                                           open_->sizes.size()));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size != open_->sizes[i]) {
      return absl::InternalError(
          fmt::format("buffer {} of {} bytes was given, expected {}", i,
                      buffers[i].size, open_->sizes[i]));
    }
  }
  open_->message.buffers = std::move(buffers);
  open_->has_buffers = true;
  return Settle();
}

}  // namespace disttrain::transport
