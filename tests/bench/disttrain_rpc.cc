// SPDX-License-Identifier: Apache-2.0
//
// Our own: a tensor to a method of an object in another process, and back.
//
//   disttrain_rpc unix|tcp
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ATen/ops/ones.h"
#include "absl/synchronization/mutex.h"
#include "fmt/format.h"
#include "tests/bench/contender.h"
#include "worker/rpc/rpc.h"

namespace disttrain::bench {

class Echo {
 public:
  at::Tensor Same(at::Tensor values) { return values; }
};

}  // namespace disttrain::bench

DISTTRAIN_REMOTE(disttrain::bench::Echo, Same);

namespace disttrain::bench {
namespace {

rpc::Peer PeerAt(int rank) {
  rpc::Peer peer;
  peer.rank = rank;
  peer.role = "bench";
  peer.role_index = rank;
  return peer;
}

// One rank of two: listens at once, and starts when it knows the other.
class Rank {
 public:
  Rank(int rank, const std::string& listen) : rank_(rank) {
    transport::EndpointOptions options;
    options.job_uid = "bench";
    options.self = {rank, 0};
    options.listen = listen;
    auto endpoint = transport::Endpoint::Listen(options);
    if (!endpoint.ok()) Die(endpoint.status().ToString());
    endpoint_ = *std::move(endpoint);
  }

  std::string address() const { return endpoint_->address(); }

  // `other`: the other rank's address.
  void Start(const std::string& other) {
    rpc::AgentOptions options;
    options.self = PeerAt(rank_);
    options.peers = {PeerAt(0), PeerAt(1)};
    options.addresses = {{{rank_, 0}, address()}, {{1 - rank_, 0}, other}};
    options.endpoint = endpoint_.get();
    options.registry = rpc::Remotes<Echo>();
    agent_ = rpc::Agent::Start(std::move(options));
  }
  rpc::Agent& agent() { return *agent_; }

 private:
  const int rank_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::unique_ptr<rpc::Agent> agent_;
};

class DisttrainRpc final : public Contender {
 public:
  DisttrainRpc() : echo_(rpc::Remote<Echo>(1)) {}

  void Prepare(size_t floats) override {
    payload_ = at::Tensor();  // so that two payloads never are three
    payload_ = at::ones({static_cast<int64_t>(floats)});
  }
  void Call() override { echo_.Sync(&Echo::Same, payload_); }
  std::function<void()> Start() override {
    return [answer = echo_.Async(&Echo::Same, payload_)] { answer.Get(); };
  }

 private:
  const rpc::RRef<Echo> echo_;
  at::Tensor payload_;
};

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain::bench;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // As in every worker (worker/programs/main.cc).
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (arguments.size() == 3 && arguments[0] == "--peer") {
    Rank rank(1, arguments[1]);
    rank.Start(arguments[2]);
    Ready(rank.address());
    for (;;) pause();
  }
  const bool tcp = arguments.at(0) == "tcp";
  const auto listen = [&](int rank) {
    return tcp ? "127.0.0.1:0"
               : fmt::format("unix:{}/{}.sock", SocketFolder(), rank);
  };
  Rank rank(0, listen(0));
  const PeerProcess peer({listen(1), rank.address()});
  rank.Start(peer.address());
  const disttrain::rpc::Agent::Scope scope(rank.agent());
  DisttrainRpc contender;
  Serve(contender, peer.pid());
}
