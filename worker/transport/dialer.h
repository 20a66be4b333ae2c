// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/transport/address.h"
#include "worker/transport/hello.h"
#include "worker/transport/stream.h"

namespace disttrain::transport {

// One wish for a connection.
struct Dial {
  Address address;
  Hello hello;  // what we say
  absl::Time deadline;
  // The dial enters kConnecting (again) or kGreeting. False: it is no longer
  // wanted, because the peer's own dial came first.
  std::function<bool(Link)> enter;
};

// Opens connections, each on a thread of its own ("dial"): name resolution,
// connecting, the exchange of hellos, and all of it again while the peer may
// still be starting, until the deadline.
class Dialer {
 public:
  // The greeted stream, or: UNAVAILABLE: no connection by the deadline, or the
  // peer refuses for good; CANCELLED: not wanted, or stopped.
  using Done = std::function<void(absl::StatusOr<std::unique_ptr<Stream>>)>;

  Dialer();
  ~Dialer() { Stop(); }

  // Calls `done` once, on the dial's thread.
  // Errors: UNAVAILABLE: no more threads; `done` is not called.
  absl::Status Start(Dial dial, Done done);

  // Ends all dials and joins their threads.
  void Stop();

 private:
  struct Call {
    std::thread thread;
    bool ended = false;
  };

  const UniqueFd cancel_;  // readable once Stop was called
  absl::Mutex mu_;
  std::list<Call> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::transport
