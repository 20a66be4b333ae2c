// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace disttrain {

// Who this process is: read once from the environment, in the first
// milliseconds of main.
struct Identity {
  std::string job;      // "namespace/name"; torchrun: its run id; else "local"
  std::string job_uid;  // fences every protocol; default: the run id, or `job`
  int attempt = 0;      // whole-job restarts so far
  int incarnation = 0;  // restarts of this rank alone within the attempt

  std::string role;    // torchrun's default: "default"
  int role_index = 0;  // of the pod within its role
  // restart: Rank. Losing this rank does not end the attempt.
  bool replaceable = false;

  int rank = 0;  // in [0, world_size)
  int world_size = 1;
  int local_rank = 0;  // within the pod, in [0, local_world_size)
  int local_world_size = 1;
  int role_rank = 0;  // within the role, in [0, role_world_size)
  int role_world_size = 1;

  // Where rank 0 serves: "host:port", "[v6]:port" or "unix:/path".
  std::string rendezvous;
  absl::Duration rendezvous_timeout = absl::Seconds(300);

  std::string program;            // "": none named
  std::string parameters = "{}";  // one JSON object, <= 64 KiB
  std::string tls_dir;            // "": no TLS
  std::optional<int>
      metrics_port;            // 0: the kernel chooses; absent: none served
  std::string checkpoint_dir;  // "": none
  absl::Duration report_interval = absl::Seconds(10);
  std::string pod;  // default: "<role>-<role_index>"
  std::string termination_message_path;
};

using GetEnv = std::function<std::optional<std::string>(const char* name)>;

// The process environment, for main. Reads it: call before threads change it.
std::optional<std::string> ProcessEnv(const char* name);

// Reads DISTTRAIN_* (proto/contract/env.h), and torchrun's names where those
// are absent: ROLE_NAME, TORCHELASTIC_RUN_ID (job and uid),
// TORCHELASTIC_RESTART_COUNT (attempt), MASTER_ADDR (rendezvous host, with
// MASTER_PORT, or with port 29400 where MASTER_PORT is absent or belongs to
// torchrun's own store). Only RANK, WORLD_SIZE and an address to meet at have
// no default.
//
// Errors: INVALID_ARGUMENT with every mistake, joined by "; ": each names the
// variable, its value and what was expected. Also for values that contradict
// each other.
absl::StatusOr<Identity> IdentityFromEnv(const GetEnv& get_env);

// Whether the ranks meet on Unix sockets (one machine, one user).
bool UsesUnixSockets(const Identity& identity);

// The address under which the other ranks reach this process: that of the
// interface whose route leads to rank 0. A literal IPv4 or IPv6 address,
// without brackets.
//
// Needs a "host:port" rendezvous. Errors: UNAVAILABLE (rank 0's name does not
// resolve, or no route) at `deadline`.
// Blocking: until the name resolves (a pod's name appears with the pod), at
// most until `deadline` and one look-up more.
absl::StatusOr<std::string> PodHost(const Identity& identity,
                                    absl::Time deadline);

// Where this rank listens for data: "unix:<folder of the rendezvous>/
// d<rank>-<attempt>-<incarnation>.sock", or PodHost with port 0 ("10.0.0.7:0",
// "[fd00::7]:0"). Errors and Blocking: PodHost's; with "unix:" neither.
absl::StatusOr<std::string> DataListenAddress(const Identity& identity,
                                              absl::Time deadline);

}  // namespace disttrain
