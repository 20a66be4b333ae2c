// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/rpc/peer.h"
#include "worker/transport/endpoint.h"

namespace disttrain::rpc::internal {

// Who is in the job, and who is lost. Threads: thread-safe.
class PeerTable {
 public:
  explicit PeerTable(const std::vector<Peer>& peers);

  struct Status {
    Peer peer;
    bool lost = false;
    bool leaving = false;  // said goodbye
    bool reached = false;  // a message went there or came from there
    std::string lost_reason;
  };

  // The current life of a rank.
  std::optional<Status> Get(int rank) const;
  // Only if that life is the current one.
  std::optional<Status> Get(transport::PeerId id) const;
  std::vector<Peer> All() const;

  // False if it was lost already, or is not the current life.
  bool MarkLost(transport::PeerId id, const std::string& reason);
  void MarkLeaving(const Peer& peer);
  void MarkReached(const Peer& peer);
  // A successor. Returns its predecessor if that one was not lost yet.
  std::optional<Peer> Replace(const Peer& peer);

 private:
  mutable absl::Mutex mu_;
  std::map<int, Status> peers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::rpc::internal
