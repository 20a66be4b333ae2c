// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/transport/address.h"
#include "worker/transport/unique_fd.h"

namespace disttrain::transport {

// A socket that listens. Removes the file of a Unix socket at its end, if that
// is still its own.
//
// Threads: one thread accepts.
class Listener {
 public:
  // Unix: the file gets mode 0600; one that a dead process left behind is
  // replaced. TCP: a wildcard takes IPv6 and IPv4, or IPv4 alone where IPv6 is
  // missing; port 0: the kernel chooses.
  // Errors: ALREADY_EXISTS: somebody listens there; INVALID_ARGUMENT: no such
  // address here; PERMISSION_DENIED; UNAVAILABLE: out of descriptors.
  static absl::StatusOr<Listener> Bind(const Address& address);

  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_.get(); }
  // As bound: with the port that the kernel chose.
  const Address& address() const { return address_; }

  // A connection that waits, non-blocking, with options set and, on a Unix
  // socket, the peer's user id checked. Errors: UNAVAILABLE: none waits (any
  // more), RESOURCE_EXHAUSTED: out of descriptors, PERMISSION_DENIED: another
  // user's process (that connection is closed).
  absl::StatusOr<UniqueFd> Accept();

 private:
  Listener(UniqueFd fd, Address address);

  UniqueFd fd_;
  Address address_;
  dev_t device_ = 0;  // of the Unix socket's file
  ino_t inode_ = 0;
};

// Connects, non-blocking socket and options as Accept gives them.
//
// `cancel`: a descriptor that becomes readable when waiting must end.
// Blocking: until `deadline`. Errors: UNAVAILABLE: may work later (refused, no
// such file yet, no route, time is up); INVALID_ARGUMENT, PERMISSION_DENIED:
// will not; CANCELLED.
absl::StatusOr<UniqueFd> Connect(const SocketAddress& address,
                                 absl::Time deadline, int cancel);

// Waits until `fd` has one of `events` (poll's).
// Errors: DEADLINE_EXCEEDED; CANCELLED: `cancel` became readable.
absl::Status Await(int fd, short events, absl::Time deadline, int cancel);

}  // namespace disttrain::transport
