// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/peer_table.h"

#include <utility>

namespace disttrain::rpc::internal {
namespace {

PeerTable::StatusPtr Alive(const Peer& peer) {
  auto status = std::make_shared<PeerTable::Status>();
  status->peer = peer;
  return status;
}

}  // namespace

PeerTable::PeerTable(const std::vector<Peer>& peers) {
  for (const Peer& peer : peers) peers_[peer.rank] = Alive(peer);
}

PeerTable::StatusPtr PeerTable::Get(int rank) const {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(rank);
  return it == peers_.end() ? nullptr : it->second;
}

PeerTable::StatusPtr PeerTable::Get(transport::PeerId id) const {
  StatusPtr status = Get(id.rank);
  if (status != nullptr && status->peer.incarnation != id.incarnation) {
    return nullptr;
  }
  return status;
}

std::vector<Peer> PeerTable::All() const {
  absl::MutexLock lock(&mu_);
  std::vector<Peer> all;
  all.reserve(peers_.size());
  for (const auto& [rank, status] : peers_) all.push_back(status->peer);
  return all;
}

bool PeerTable::MarkLost(transport::PeerId id, const std::string& reason) {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(id.rank);
  if (it == peers_.end() || it->second->lost ||
      it->second->peer.incarnation != id.incarnation) {
    return false;
  }
  auto lost = std::make_shared<Status>(*it->second);
  lost->lost = true;
  lost->lost_reason = reason;
  it->second = std::move(lost);
  return true;
}

bool PeerTable::MarkLeft(transport::PeerId id) {
  absl::MutexLock lock(&mu_);
  const auto it = peers_.find(id.rank);
  if (it == peers_.end() || it->second->lost || it->second->left ||
      it->second->peer.incarnation != id.incarnation) {
    return false;
  }
  auto left = std::make_shared<Status>(*it->second);
  left->left = true;
  it->second = std::move(left);
  return true;
}

bool PeerTable::Replace(const Peer& peer) {
  absl::MutexLock lock(&mu_);
  StatusPtr& status = peers_[peer.rank];
  if (status != nullptr && status->peer.incarnation >= peer.incarnation) {
    return false;
  }
  status = Alive(peer);
  return true;
}

}  // namespace disttrain::rpc::internal
