// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/rpc/call_recorder.h"
#include "worker/rpc/future_state.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/reference_state.h"
#include "worker/rpc/served_call.h"

namespace disttrain::rpc::internal {

// A call made here that has not ended.
struct OutgoingCall {
  uint64_t id = 0;
  Peer peer;
  std::string_view label;  // "Observer.RunEpisode"; static storage
  absl::Time start;
  absl::Time deadline;
  std::shared_ptr<FutureState> state;
  // The target, and RRefs among the arguments: held until the reply says that
  // the callee needs no help of ours to have them.
  std::vector<std::shared_ptr<ReferenceState>> kept;
  uint64_t parent = 0;  // ServedCall::serial() of the call that made it, or 0
  std::unique_ptr<RecordedCall> record;
};

// The same at one moment, for messages.
struct CallSnapshot {
  std::string label;
  Peer peer;
  absl::Time start;
  absl::Time deadline;
};

// All calls in flight, made here and served here.
//
// Threads: thread-safe; calls nothing under its lock.
class CallTable {
 public:
  using Outgoing = std::shared_ptr<OutgoingCall>;
  using Incoming = std::shared_ptr<ServedCall>;

  uint64_t NextId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // True if its deadline is before every other: the keeper must wake earlier.
  bool AddOutgoing(const Outgoing& call);
  // Takes the call out; null if somebody else has. With `detach` its kept
  // references stay until DropDetached.
  Outgoing TakeOutgoing(uint64_t id, bool detach);
  // The rank and incarnation that a call was made to, if it is in flight.
  bool IsOutgoingTo(uint64_t id, int rank, int incarnation) const;
  std::vector<Outgoing> TakeOutgoingIf(
      const std::function<bool(const OutgoingCall&)>& matches);
  // Ids of calls due by `now`; the earliest deadline of the others.
  std::pair<std::vector<uint64_t>, absl::Time> Due(absl::Time now);

  // What a late reply, or the loss of the peer, lets go.
  std::vector<std::shared_ptr<ReferenceState>> DropDetached(uint64_t id);
  std::vector<std::shared_ptr<ReferenceState>> DropDetachedOf(int rank,
                                                              int incarnation);

  // kCancelled: its cancellation, a small message, has overtaken it.
  enum class Admission { kAdmitted, kFull, kDuplicate, kCancelled };
  Admission AddIncoming(const Incoming& call, size_t limit);
  Incoming FindIncoming(const Peer& caller, uint64_t id) const;
  // The call to cancel. If there is none its request may yet come: remembered
  // among the last kEarlyCancels.
  Incoming FindCancelled(const Peer& caller, uint64_t id);
  void RemoveIncoming(const ServedCall& call);
  // All, or those of one caller.
  std::vector<Incoming> IncomingOf(const Peer* caller) const;

  // Oldest first.
  std::vector<CallSnapshot> AllOutgoing() const;
  size_t outgoing_count() const;
  size_t incoming_count() const;
  // True when nothing is in flight. Blocking: until `deadline`.
  bool WaitIdle(absl::Time deadline) const;

 private:
  struct Detached {
    int rank;
    int incarnation;
    std::vector<std::shared_ptr<ReferenceState>> kept;
  };
  struct IncomingKey {
    int rank;
    int incarnation;
    uint64_t id;
    bool operator==(const IncomingKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const IncomingKey& key) {
      return H::combine(std::move(state), key.rank, key.incarnation, key.id);
    }
  };

  static constexpr size_t kEarlyCancels = 1024;

  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return outgoing_.empty() && incoming_.empty();
  }
  void Detach(const Outgoing& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::atomic<uint64_t> next_id_ = 1;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<uint64_t, Outgoing> outgoing_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, Detached> detached_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<IncomingKey, Incoming> incoming_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<IncomingKey> early_cancels_ ABSL_GUARDED_BY(mu_);
  std::deque<IncomingKey> early_cancel_order_ ABSL_GUARDED_BY(mu_);
  absl::Time earliest_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
};

}  // namespace disttrain::rpc::internal
