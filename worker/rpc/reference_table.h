// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "disttrain/v1/rpc.pb.h"
#include "worker/rpc/object_id.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/reference_state.h"

namespace disttrain::rpc::internal {

using ReferencePtr = std::shared_ptr<ReferenceState>;

// Objects that live here with the forks of other processes on them, and the
// objects of others that are held here. Decides; sending is the Core's.
//
// References that come out as "dropped" are for the caller to destroy where
// destructors of users may run: none runs under the lock.
//
// Threads: thread-safe.
class ReferenceTable {
 public:
  explicit ReferenceTable(const Peer& self) : self_(self) {}

  // --- Objects that live here.

  // Gives the object a number; it lives as long as an RRef here or a fork.
  ReferencePtr Own(std::shared_ptr<void> value, const ClassEntry& entry,
                   std::weak_ptr<Core> core);
  // Null if it is gone or never was.
  ReferencePtr Find(const v1::ObjectId& id) const;
  // Notes the fork of `holder`; false if the object is gone.
  bool AddFork(const v1::ObjectId& id, const ForkId& fork, const Peer& holder);
  ReferencePtr DropFork(const v1::ObjectId& id, const ForkId& fork);
  // The holder is gone: drops all its forks.
  std::vector<ReferencePtr> DropHolder(const Peer& holder);
  void EraseOwned(const ObjectId& id);

  // --- References on their way.

  // Writes a reference for `to`; if the object lives here its fork is noted.
  void Write(const ReferenceState& state, const Peer& to, v1::Reference& out);
  // The message did not leave.
  ReferencePtr Unwrite(const v1::Reference& written);

  struct Claimed {
    ReferencePtr state;
    // To send to the owner, if set: our fork to confirm, or a fork that we
    // have no use for since we hold the object already.
    std::unique_ptr<v1::ForkRequest> ask;
    std::unique_ptr<v1::ReleaseRequest> release;
  };
  // A reference that `from` sent. NOT_FOUND: the object is gone from here;
  // UNAVAILABLE: its owner is.
  absl::StatusOr<Claimed> Claim(const v1::Reference& reference,
                                const Peer& from, const Peer* owner,
                                std::weak_ptr<Core> core);

  // --- Objects of others, until their owner has confirmed our fork.

  using Waiting = absl::AnyInvocable<void(const absl::Status&)>;
  // Keeps `waiting` until the fork is settled; gives it back if it is already.
  Waiting AwaitFork(const ReferenceState& state, Waiting waiting);
  // Who waited for this request; each is to be told the outcome.
  std::vector<Waiting> SettleFork(uint64_t request_id);
  std::vector<Waiting> SettleForksOf(const Peer& owner);
  // False if another handle for it has come meanwhile, or it was not held.
  void EraseHandle(const ObjectId& id);

  struct Counts {
    int64_t owned = 0;
    int64_t forks = 0;
    int64_t held = 0;
    int64_t pending = 0;
  };
  Counts counts() const;

 private:
  struct Owned {
    std::weak_ptr<ReferenceState> state;
    ReferencePtr kept;                            // set while there are forks
    std::map<ForkId, std::pair<int, int>> forks;  // → holder, incarnation
  };
  struct Pending {
    uint64_t request_id = 0;
    std::vector<Waiting> waiting;
  };

  bool IsMine(int rank, int incarnation) const {
    return rank == self_.rank && incarnation == self_.incarnation;
  }
  uint64_t NextNumber() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return next_++; }

  const Peer self_;
  mutable absl::Mutex mu_;
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 1;  // objects, forks and requests
  absl::flat_hash_map<uint64_t, Owned> owned_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<ObjectId, std::weak_ptr<ReferenceState>> held_
      ABSL_GUARDED_BY(mu_);
  std::map<ObjectId, Pending> pending_ ABSL_GUARDED_BY(mu_);
};

// Between the wire's identities and ours.
ObjectId FromWire(const v1::ObjectId& id);
void ToWire(const ObjectId& id, v1::ObjectId& out);

}  // namespace disttrain::rpc::internal
