// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace disttrain::rpc {

// One process of the job, in one of its lives.
struct Peer {
  int rank = 0;
  // Restarts of this rank alone; a successor is another peer.
  int incarnation = 0;
  std::string role;
  int role_index = 0;  // within the role
  std::string pod;
  // restart: Rank. It may be lost, and come back as another incarnation,
  // without any harm but to what it was doing.
  bool replaceable = false;

  // The same life of the same rank; the rest follows from that.
  bool operator==(const Peer& other) const {
    return rank == other.rank && incarnation == other.incarnation;
  }
};

// "observer 1 (rank 2, pod cartpole-observer-1)"
std::string Describe(const Peer& peer);

}  // namespace disttrain::rpc
