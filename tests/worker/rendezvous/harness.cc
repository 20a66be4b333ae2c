// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/rendezvous/harness.h"

#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "proto/runtime/status.h"

namespace disttrain::testing {

Folder::Folder() {
  std::string pattern = "/tmp/rdzv-XXXXXX";
  DISTTRAIN_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

v1::Caller CallerOf(int rank, int attempt, int incarnation) {
  v1::Caller caller;
  caller.set_job_uid("uid-a");
  caller.set_attempt(attempt);
  caller.set_rank(rank);
  caller.set_incarnation(incarnation);
  return caller;
}

v1::Member MemberOf(int rank, int incarnation) {
  v1::Member member;
  member.set_rank(rank);
  member.set_incarnation(incarnation);
  member.set_role(rank == 0 ? "agent" : "observer");
  member.set_role_index(rank == 0 ? 0 : rank - 1);
  member.set_pod(fmt::format("pod-{}", rank));
  member.set_address(fmt::format("127.0.0.1:{}", 1000 + rank));
  return member;
}

ServerOptions OptionsOf(const std::string& listen, int world_size) {
  ServerOptions options;
  options.listen = listen;
  options.job_uid = "uid-a";
  options.world_size = world_size;
  options.driver_role = "agent";
  return options;
}

Rank::Rank(const std::string& target, int rank, int attempt, int incarnation)
    : rank_(rank), incarnation_(incarnation) {
  ClientOptions options;
  options.target = target;
  options.caller = CallerOf(rank, attempt, incarnation);
  auto client = RendezvousClient::Connect(options);
  DISTTRAIN_CHECK(client.ok());
  client_ = *std::move(client);
}

absl::StatusOr<std::vector<v1::Member>> Rank::Join(int world_size,
                                                   absl::Time deadline) {
  return client_->Join(MemberOf(rank_, incarnation_), world_size, deadline);
}

void Rank::Beat(const v1::Report& report) {
  client_->StartHeartbeat(
      absl::Milliseconds(50), [report] { return report; },
      [this](const v1::Event& event) {
        absl::MutexLock lock(&mu_);
        events_.push_back(event);
      });
}

v1::Event Rank::Await(v1::Event::KindCase kind, absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  v1::Event found;
  const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const v1::Event& event : events_) {
      if (event.kind_case() != kind) continue;
      found = event;
      return true;
    }
    return false;
  };
  mu_.AwaitWithDeadline(absl::Condition(&came), deadline);
  return found;
}

int Rank::Count(v1::Event::KindCase kind) {
  absl::MutexLock lock(&mu_);
  int count = 0;
  for (const v1::Event& event : events_) count += event.kind_case() == kind;
  return count;
}

World Meet(const ServerOptions& options) {
  World world;
  auto server = RendezvousServer::Start(options);
  DISTTRAIN_CHECK(server.ok());
  world.server = *std::move(server);
  std::vector<std::thread> joins;
  for (int rank = 0; rank < options.world_size; ++rank) {
    world.ranks.push_back(
        std::make_unique<Rank>(world.server->address(), rank));
  }
  for (auto& rank : world.ranks) {
    joins.emplace_back([&rank, &options] {
      DISTTRAIN_CHECK(rank->Join(options.world_size).ok());
      rank->Beat();
    });
  }
  for (std::thread& join : joins) join.join();
  return world;
}

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = Deadline();
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace disttrain::testing
