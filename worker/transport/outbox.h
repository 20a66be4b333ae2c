// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "worker/transport/endpoint.h"

namespace disttrain::transport {

// What waits to be written to one peer, cut into frames in the order in which
// it should leave: small messages first, large ones in turn, chunk by chunk.
//
// Nothing is copied but frame headers: the parts point into the messages.
// Threads: not thread-safe; parts stay valid until Consume covers them,
// whatever is pushed meanwhile.
class Outbox {
 public:
  // Messages up to this size are one frame and pass larger ones.
  static constexpr uint64_t kSmallBytes = uint64_t{64} << 10;

  // What a message costs beside its content, so that empty ones count too.
  static constexpr uint64_t kMessageBytes = 256;

  // Things to be destroyed where no lock is held.
  using Garbage = std::vector<std::shared_ptr<const void>>;

  void Push(Message message);
  // Bytes that leave before all messages.
  void PushFirst(std::string bytes);
  // A goodbye after all messages pushed so far.
  void PushGoodbye();

  // The next parts to be written, at most `parts.size()`; how many.
  size_t Gather(absl::Span<iovec> parts);

  // The first `bytes` of what Gather gave are written.
  void Consume(size_t bytes, Garbage& garbage);

  // Drops everything.
  void Clear(Garbage& garbage);

  bool empty() const {
    return wire_.empty() && small_.empty() && large_.empty() && !goodbye_;
  }
  // What waits: content bytes and kMessageBytes for each message.
  uint64_t bytes() const { return bytes_; }

 private:
  struct Outgoing {
    Message message;
    std::string head;  // frame header and table of the BEGIN
    uint64_t content = 0;
    uint64_t sent = 0;  // content bytes that are cut into frames
    size_t region = 0;  // 0: the header, i: buffer i - 1
    uint64_t offset = 0;
    uint32_t stream = 0;
  };
  struct Part {
    const char* data;
    size_t size;
    bool content;     // rather than a frame's header
    uint64_t weight;  // given back when all of it is written
    std::shared_ptr<const void> keep;
  };

  void Refill();
  void CutBegin(const std::shared_ptr<Outgoing>& outgoing);
  void CutChunk(const std::shared_ptr<Outgoing>& outgoing);
  void CutContent(const std::shared_ptr<Outgoing>& outgoing, uint64_t bytes);
  void AddHead(std::shared_ptr<const std::string> bytes);

  std::deque<std::shared_ptr<Outgoing>> small_;
  std::deque<std::shared_ptr<Outgoing>> large_;  // the first may have begun
  std::deque<Part> wire_;                        // in the order of the wire
  bool goodbye_ = false;
  uint64_t bytes_ = 0;
  uint32_t next_stream_ = 1;
};

}  // namespace disttrain::transport
