// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
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
    bool left = false;  // said goodbye
    bool lost = false;
    std::string lost_reason;
  };
  // What was known at one moment; shared, since every call asks.
  using StatusPtr = std::shared_ptr<const Status>;

  // The current life of a rank, or null.
  StatusPtr Get(int rank) const;
  // Null if that life is not the current one.
  StatusPtr Get(transport::PeerId id) const;
  std::vector<Peer> All() const;

  // False if it was lost already, or is not the current life.
  bool MarkLost(transport::PeerId id, const std::string& reason);
  // The same for a goodbye.
  bool MarkLeft(transport::PeerId id);
  // A successor. False if that life, or a later one, is known already.
  bool Replace(const Peer& peer);

 private:
  mutable absl::Mutex mu_;
  std::map<int, StatusPtr> peers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::rpc::internal
