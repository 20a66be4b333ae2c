// SPDX-License-Identifier: Apache-2.0
//
// One rank as a process, for process_test: rank_main TARGET RANK WORLD_SIZE.
// Rank 0 serves. Writes "joined" once all
// ranks have joined and send heartbeats, and one line for each event; leaves
// with 75 after a failure, with 0 after Finish. Commands come by standard
// input: "finish"; its end means that the test has gone.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/contract/exit_code.h"
#include "proto/runtime/status.h"
#include "tests/worker/rendezvous/harness.h"

namespace disttrain::testing {
namespace {

void Say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void OnEvent(const v1::Event& event, RendezvousServer* server) {
  if (event.has_failure()) {
    Say(fmt::format("failure of rank {} ({}, {}): {}", event.failure().rank(),
                    event.failure().role(), event.failure().pod(),
                    event.failure().cause()));
    // Or the others would hear of rank 0's end only.
    if (server != nullptr) server->Shutdown(Deadline());
    ::_exit(static_cast<int>(ExitCode::kPeerLost));
  }
  if (event.has_finish()) Say("finish");
}

int Run(const std::string& target, int rank, int world_size) {
  std::unique_ptr<RendezvousServer> server;
  if (rank == 0) {
    auto started = RendezvousServer::Start(OptionsOf(target, world_size));
    if (!started.ok()) {
      Say(Message(started.status()));
      return 1;
    }
    server = *std::move(started);
  }
  ClientOptions options;
  options.target = target;
  options.caller = CallerOf(rank);
  auto client = RendezvousClient::Connect(options);
  const auto members = (*client)->Join(MemberOf(rank), world_size, Deadline());
  if (!members.ok()) {
    Say(Message(members.status()));
    return 1;
  }
  // The sum over ranks tells when the heartbeats of all were heard.
  v1::Report report;
  report.set_samples_per_second(1);
  (*client)->StartHeartbeat(
      absl::Milliseconds(50), [&report] { return report; },
      [&server](const v1::Event& event) { OnEvent(event, server.get()); });
  const bool all_heard = Eventually([&] {
    const auto progress = (*client)->GetProgress(Deadline());
    return progress.ok() &&
           progress->training().samples_per_second() == world_size;
  });
  Say(all_heard ? "joined" : "not all ranks were heard");
  std::string command;
  while (std::getline(std::cin, command)) {
    if (command == "finish" && !(*client)->Finish("done").ok()) return 1;
    if (command == "leave") {
      if (server != nullptr) server->Shutdown(Deadline());
      return 0;
    }
  }
  return 1;
}

}  // namespace
}  // namespace disttrain::testing

int main(int argc, char** argv) {
  if (argc != 4) return static_cast<int>(disttrain::ExitCode::kUsage);
  return disttrain::testing::Run(argv[1], std::stoi(argv[2]),
                                 std::stoi(argv[3]));
}
