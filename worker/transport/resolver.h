// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/transport/address.h"

namespace disttrain::transport {

// The socket addresses of `address`. A name is looked up on a thread of its own
// ("resolve"), which is left behind when the name servers do not answer.
//
// `cancel`: a descriptor that becomes readable when waiting must end.
// Blocking: until `deadline`. Errors: UNAVAILABLE: the name is not known now,
// or no answer in time; CANCELLED.
absl::StatusOr<std::vector<SocketAddress>> ResolveUntil(const Address& address,
                                                        absl::Time deadline,
                                                        int cancel);

}  // namespace disttrain::transport
