// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/peer_table.h"

namespace disttrain::rpc::internal {

PeerTable::PeerTable(const std::vector<Peer>& peers) {
  for (const Peer& peer : peers) peers_[peer.rank].peer = peer;
}

std::optional<PeerTable::Status> PeerTable::Get(int rank) const {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(rank);
  if (it == peers_.end()) return std::nullopt;
  return it->second;
}

std::optional<PeerTable::Status> PeerTable::Get(transport::PeerId id) const {
  std::optional<Status> status = Get(id.rank);
  if (status.has_value() && status->peer.incarnation != id.incarnation) {
    return std::nullopt;
  }
  return status;
}

std::vector<Peer> PeerTable::All() const {
  absl::MutexLock lock(&mu_);
  std::vector<Peer> all;
  all.reserve(peers_.size());
  for (const auto& [rank, status] : peers_) all.push_back(status.peer);
  return all;
}

bool PeerTable::MarkLost(transport::PeerId id, const std::string& reason) {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(id.rank);
  if (it == peers_.end() || it->second.lost ||
      it->second.peer.incarnation != id.incarnation) {
    return false;
  }
  it->second.lost = true;
  it->second.lost_reason = reason;
  return true;
}

void PeerTable::MarkLeaving(const Peer& peer) {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(peer.rank);
  if (it != peers_.end() && it->second.peer == peer) it->second.leaving = true;
}

void PeerTable::MarkReached(const Peer& peer) {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(peer.rank);
  if (it != peers_.end() && it->second.peer == peer) it->second.reached = true;
}

std::optional<Peer> PeerTable::Replace(const Peer& peer) {
  absl::MutexLock lock(&mu_);
  Status& status = peers_[peer.rank];
  std::optional<Peer> previous;
  if (!status.lost && !status.leaving &&
      status.peer.incarnation != peer.incarnation) {
    previous = status.peer;
  }
  status = Status();
  status.peer = peer;
  return previous;
}

}  // namespace disttrain::rpc::internal
