// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "worker/rendezvous/roster.h"

// What the tests of the roster ask it.
namespace disttrain::testing {

inline const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

inline RosterOptions Options(int world_size, int attempt = 0) {
  RosterOptions options;
  options.job_uid = "uid-a";
  options.attempt = attempt;
  options.world_size = world_size;
  options.driver_role = "agent";
  return options;
}

inline v1::Caller Caller(int rank, int incarnation = 0, uint64_t process = 0) {
  v1::Caller caller;
  caller.set_job_uid("uid-a");
  caller.set_rank(rank);
  caller.set_incarnation(incarnation);
  caller.set_process(process != 0 ? process
                                  : static_cast<uint64_t>(100 + rank));
  return caller;
}

// Rank 0 is agent 0, rank k observer k-1.
inline v1::JoinRequest Request(const v1::Caller& caller, int world_size) {
  v1::JoinRequest request;
  *request.mutable_caller() = caller;
  request.set_world_size(world_size);
  v1::Member* self = request.mutable_self();
  self->set_rank(caller.rank());
  self->set_incarnation(caller.incarnation());
  self->set_role(caller.rank() == 0 ? "agent" : "observer");
  self->set_role_index(caller.rank() == 0 ? 0 : caller.rank() - 1);
  self->set_pod(fmt::format("pod-{}", caller.rank()));
  self->set_address(fmt::format("unix:/tmp/d{}", caller.rank()));
  return request;
}

inline v1::JoinRequest Replaceable(v1::JoinRequest request) {
  request.mutable_self()->set_replaceable(true);
  return request;
}

// A complete roster, every rank with stream 1 + rank.
inline Roster Complete(int world_size) {
  Roster roster(Options(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    EXPECT_TRUE(roster.Join(Request(Caller(rank), world_size), kStart).ok());
    roster.StreamStarted(rank, static_cast<uint64_t>(1 + rank), kStart);
  }
  EXPECT_TRUE(roster.Complete());
  return roster;
}

inline v1::Failure FailureOf(int rank, const std::string& cause) {
  v1::Failure failure;
  failure.set_rank(rank);
  failure.set_cause(cause);
  return failure;
}

inline void Beat(Roster& roster, int rank, absl::Time now) {
  roster.Heard(rank, v1::HeartbeatRequest(), now);
}

}  // namespace disttrain::testing
