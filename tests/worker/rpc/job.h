// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/fakes/loopback_endpoint.h"
#include "worker/rpc/rpc.h"

namespace disttrain::rpc {

// Far longer than anything here takes; a test that reaches it has failed.
inline absl::Time Soon() { return absl::Now() + absl::Seconds(30); }

inline Peer PeerAt(int rank, int incarnation = 0) {
  return {.rank = rank,
          .incarnation = incarnation,
          .role = rank == 0 ? "agent" : "observer",
          .role_index = rank == 0 ? 0 : rank - 1,
          .pod = "job-" + std::to_string(rank)};
}

// Several agents in this process, which reach each other in memory.
class Job {
 public:
  using Configure = std::function<void(AgentOptions&)>;

  Job(int size, Registry registry, Configure configure = nullptr,
      transport::Limits limits = {})
      : network_(limits) {
    std::vector<Peer> peers;
    for (int rank = 0; rank < size; ++rank) peers.push_back(PeerAt(rank));
    for (int rank = 0; rank < size; ++rank) {
      endpoints_.push_back(network_.Make({rank, 0}));
    }
    for (int rank = 0; rank < size; ++rank) {
      AgentOptions options;
      options.self = PeerAt(rank);
      options.peers = peers;
      options.endpoint = endpoints_[static_cast<size_t>(rank)].get();
      options.registry = registry;
      if (configure) configure(options);
      agents_.push_back(Agent::Start(std::move(options)));
    }
  }
  ~Job() {
    // A killed rank's agent does not know that it is dead, and would wait.
    for (auto& agent : agents_) agent->Abort("the test is over");
    for (auto& agent : agents_) agent->Shutdown(Soon());
  }

  Agent& agent(int rank) { return *agents_[static_cast<size_t>(rank)]; }
  fakes::LoopbackEndpoint& endpoint(int rank) {
    return *endpoints_[static_cast<size_t>(rank)];
  }
  fakes::LoopbackNetwork& network() { return network_; }

  // Waits until `rank`'s statistics are as `holds` wants them.
  template <class F>
  bool Eventually(int rank, F holds) {
    const absl::Time end = Soon();
    while (!holds(agent(rank).statistics())) {
      if (absl::Now() > end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

 private:
  fakes::LoopbackNetwork network_;
  std::vector<std::unique_ptr<fakes::LoopbackEndpoint>> endpoints_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

// The message of what `run` throws, as type E; "" if it throws nothing.
template <class E, class F>
std::string MessageOfThrow(F run) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace disttrain::rpc
