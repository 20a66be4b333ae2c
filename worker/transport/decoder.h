// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/transport/endpoint.h"
#include "worker/transport/frame.h"
#include "worker/transport/hello.h"

namespace disttrain::transport {

// What has come of a message so far.
struct PartialMessage {
  uint32_t stream = 0;
  ReceivedMessage message;
  std::vector<uint64_t> sizes;
  size_t region = 0;  // 0: the header, i: buffer i - 1
  uint64_t offset = 0;
  bool has_buffers = false;
};

// Turns the bytes of one connection into messages. It owns no socket: it says
// where the next bytes belong, and is told how many came.
//
//   Target() → fill n bytes → Advance(n) → nothing | an event
//
// After NeedBuffers comes SetBuffers, before anything else.
// Threads: not thread-safe. After an error the decoder is of no use.
class Decoder {
 public:
  struct NeedBuffers {};  // header() and sizes() of the message are known
  struct Goodbye {};
  using Event = std::variant<std::monostate, Hello, NeedBuffers,
                             ReceivedMessage, Goodbye>;

  // `greeted`: the greeting is over. If not, the first frame must be a HELLO.
  Decoder(const Limits& limits, bool greeted)
      : limits_(limits), greeted_(greeted) {
    StartFrame();
  }

  // Where the next bytes belong; never empty.
  absl::Span<char> Target();

  // The first `bytes` of Target() are filled.
  // Errors: DATA_LOSS: the peer breaks the protocol or a limit.
  absl::StatusOr<Event> Advance(size_t bytes);

  // Of the message that needs buffers.
  const std::string& header() const { return open_->message.header; }
  const std::vector<uint64_t>& sizes() const { return open_->sizes; }

  // Memory for that message's buffers, in the order of sizes(). The
  // event: the message, if it is complete with that.
  // Errors: INTERNAL: number or sizes do not match.
  absl::StatusOr<Event> SetBuffers(std::vector<MutableBuffer> buffers);

  // Whether the connection may end here without a frame or message being cut.
  bool AtBoundary() const {
    return !open_ && !large_ && part_ == Part::kFrameHeader && filled_ == 0;
  }

 private:
  enum class Part { kFrameHeader, kHello, kTablePrefix, kSizes, kContent };

  void StartFrame();
  void StartScratch(Part part, size_t bytes);
  absl::StatusOr<Event> OnScratch();
  absl::StatusOr<Event> OnFrameHeader();
  absl::StatusOr<Event> StartPayload();
  absl::StatusOr<Event> OnHello();
  absl::StatusOr<Event> OnTablePrefix();
  absl::StatusOr<Event> OnSizes();
  // Skips what is full or empty; then the rest of the frame, its end, or an
  // event.
  absl::StatusOr<Event> Settle();
  absl::Span<char> Region();
  uint64_t RegionBytes() const;

  const Limits limits_;
  bool greeted_;
  Part part_ = Part::kFrameHeader;
  std::string scratch_;  // what is collected before it can be understood
  size_t filled_ = 0;    // of scratch_
  FrameHeader frame_;
  uint32_t frame_left_ = 0;  // bytes of payload yet to come
  TablePrefix prefix_;
  std::optional<PartialMessage> open_;  // the current frame's message
  std::optional<PartialMessage>
      large_;  // the incomplete one, while others pass
};

}  // namespace disttrain::transport
