// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/transport/unique_fd.h"

namespace disttrain::transport {

// What one read or write came to.
struct IoResult {
  enum class Kind {
    kDone,        // `bytes` > 0 went through
    kWouldBlock,  // nothing now: wait for the descriptor
    kEnd,         // the peer has ended its side (reads only)
    kError,       // `error`; the stream is of no use any more
  };
  Kind kind = Kind::kDone;
  size_t bytes = 0;
  absl::Status error;
};

// Bytes both ways over a connected, non-blocking descriptor.
//
// Threads: one reader and one writer at a time; Shutdown from any thread.
class Stream {
 public:
  virtual ~Stream() = default;

  // What to poll.
  virtual int fd() const = 0;

  virtual IoResult Read(absl::Span<const iovec> into) = 0;
  virtual IoResult Write(absl::Span<const iovec> from) = 0;

  // Bytes that the next Read has without the descriptor being readable.
  virtual bool HasBuffered() const { return false; }

  // Tells the peer that nothing more comes; reading goes on.
  virtual void EndWriting() = 0;

  // Ends both directions at once; a poll on fd() wakes up.
  virtual void Shutdown() = 0;
};

// The bytes as they are.
class PlainStream final : public Stream {
 public:
  explicit PlainStream(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const override { return fd_.get(); }
  IoResult Read(absl::Span<const iovec> into) override;
  IoResult Write(absl::Span<const iovec> from) override;
  void EndWriting() override;
  void Shutdown() override;

 private:
  const UniqueFd fd_;
};

}  // namespace disttrain::transport
