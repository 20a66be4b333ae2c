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

  bool operator==(const Peer&) const = default;
};

// "observer 1 (rank 2, pod cartpole-observer-1)"
std::string Describe(const Peer& peer);

}  // namespace disttrain::rpc
