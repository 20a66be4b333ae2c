// SPDX-License-Identifier: Apache-2.0
//
// How long so many ranks need to meet, each over a connection of its own.
//
//   roster RANKS   prints the seconds from the first Join to the last answer
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "tests/bench/contender.h"
#include "worker/rendezvous/client.h"
#include "worker/rendezvous/server.h"

namespace disttrain::bench {
namespace {

constexpr char kJob[] = "bench";

std::unique_ptr<RendezvousServer> StartServer(int ranks) {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.job_uid = kJob;
  options.world_size = ranks;
  options.driver_role = "trainer";
  auto server = RendezvousServer::Start(options);
  if (!server.ok()) Die(server.status().ToString());
  return *std::move(server);
}

std::unique_ptr<RendezvousClient> Connect(const std::string& target, int rank) {
  ClientOptions options;
  options.target = target;
  options.caller.set_job_uid(kJob);
  options.caller.set_rank(rank);
  auto client = RendezvousClient::Connect(options);
  if (!client.ok()) Die(client.status().ToString());
  return *std::move(client);
}

void Join(RendezvousClient& client, int rank, int ranks) {
  v1::Member self;
  self.set_rank(rank);
  self.set_role("trainer");
  self.set_role_index(rank);
  self.set_pod(fmt::format("bench-trainer-{}", rank));
  self.set_address(fmt::format("127.0.0.1:{}", 1024 + rank));
  const auto members = client.Join(self, ranks, absl::Now() + absl::Minutes(5));
  if (!members.ok()) Die(members.status().ToString());
  if (members->size() != static_cast<size_t>(ranks)) Die("ranks are missing");
}

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain::bench;
  const int ranks = argc == 2 ? std::stoi(argv[1]) : 0;
  if (ranks < 1) Die("roster RANKS");
  const auto server = StartServer(ranks);
  std::vector<std::unique_ptr<disttrain::RendezvousClient>> clients;
  for (int rank = 0; rank < ranks; ++rank) {
    clients.push_back(Connect(server->address(), rank));
  }
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&clients, rank, ranks] {
      Join(*clients[static_cast<size_t>(rank)], rank, ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
  fmt::print("{}\n", absl::ToDoubleSeconds(absl::Now() - start));
}
