// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "worker/rpc/peer.h"

namespace disttrain::rpc {

// What a method may know about the call that it serves. Calls that the method
// makes inherit the deadline and are cancelled with it by themselves.
struct CallInfo {
  Peer caller;
  absl::Time deadline;  // absl::InfiniteFuture(): none
  // Nobody waits for the result any more: the caller cancelled, its deadline
  // passed, or it was lost. A method that takes long looks now and then.
  bool cancelled = false;
};

// True while this thread runs a method on behalf of a peer (or of oneself).
bool InCall();

// Throws std::logic_error outside of a call.
CallInfo CurrentCall();

// CurrentCall().cancelled, cheaply; false outside of a call.
bool CallCancelled();

}  // namespace disttrain::rpc
