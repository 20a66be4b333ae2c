// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/transport/endpoint.h"
#include "worker/transport/outbox.h"
#include "worker/transport/stream.h"

namespace disttrain::transport {

// Messages to one peer, from before its connection exists until it ends.
// Whoever pushes into an empty queue writes at once, on its own thread; what
// the socket does not take is left to the reactor.
//
// Threads: thread-safe; one thread at a time writes, others only add.
class SendQueue {
 public:
  // `bytes_limit`: bytes that may wait. `sent`: counts bytes on the wire.
  SendQueue(uint64_t bytes_limit, std::atomic<uint64_t>& sent)
      : bytes_limit_(bytes_limit), sent_(sent) {}

  // Adds `message` and writes what can be written without waiting.
  //
  // Blocking: while the queue is over its limit, until `deadline`;
  // `before_blocking` is called first. A message over the limit goes alone.
  // Errors: DEADLINE_EXCEEDED; what End was given.
  absl::Status Push(Message message, absl::Time deadline,
                    absl::FunctionRef<void()> before_blocking);

  // From here on bytes go to `stream`, `preface` first. `want_writable` asks
  // for Pump when the stream takes more, or no more; it is called under our
  // lock.
  void Attach(std::shared_ptr<Stream> stream, std::string preface,
              std::function<void(bool)> want_writable);

  // Writes about `budget` bytes, until nothing is left or the stream is full.
  void Pump(size_t budget);

  // A goodbye after what is queued; nothing may be pushed any more.
  void Finish();

  // Whether all of it is written, or never will be, by `deadline`.
  bool AwaitFinished(absl::Time deadline);

  // Drops what is queued; who pushes, or waits to push, gets `reason`.
  void End(const absl::Status& reason);

 private:
  bool Fits(uint64_t bytes) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return outbox_.bytes() == 0 || outbox_.bytes() + bytes <= bytes_limit_;
  }
  bool Finished() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !end_.ok() || broken_ ||
           (finishing_ && outbox_.empty() && !writing_);
  }
  // Waits until `bytes` more fit.
  absl::Status Admit(uint64_t bytes, absl::Time deadline,
                     absl::FunctionRef<void()> before_blocking)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One write; whether to go on.
  bool WriteSome(size_t& budget, Outbox::Garbage& garbage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Want(bool writable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t bytes_limit_;
  std::atomic<uint64_t>& sent_;

  absl::Mutex mu_;
  Outbox outbox_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mu_);
  std::function<void(bool)> want_writable_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;  // a thread is in Pump
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;  // the reactor will call Pump
  bool broken_ ABSL_GUARDED_BY(mu_) = false;   // the reader will learn why
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::transport
