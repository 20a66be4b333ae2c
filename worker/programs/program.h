// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/log.h"
#include "proto/runtime/status.h"
#include "worker/identity/identity.h"
#include "worker/programs/parameters.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/registry.h"
#include "worker/telemetry/metrics.h"
#include "worker/telemetry/progress_reporter.h"

namespace disttrain {

// Thrown by a program whose parameters or roles make no sense: exit code 78, no
// restart.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown by a program that cannot use its data or checkpoint: exit code 65, no
// restart.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a program tells of its progress; what is absent stays as it was.
struct ProgramReport {
  std::optional<int64_t> step = std::nullopt;         // finished, from 1
  std::optional<int64_t> total_steps = std::nullopt;  // expected in all
  std::optional<int64_t> epoch = std::nullopt;
  std::optional<double> loss = std::nullopt;
  std::optional<double> reward = std::nullopt;  // running (smoothed)
  std::optional<double> episode_reward = std::nullopt;
  std::optional<double> gradient_norm = std::nullopt;
  std::optional<double> learning_rate = std::nullopt;
  // Since the last report; for rates.
  int64_t environment_steps = 0;
  int64_t samples = 0;
};

// What the driver's program sees of its job.
//
// Threads: thread-safe.
class Program {
 public:
  struct Context {
    const Identity& identity;
    std::vector<rpc::Peer> peers;  // all ranks, ascending, this one too
    const std::atomic<bool>& stop_requested;
    Metrics& metrics;
    ProgressReporter& progress;
    Log log;
  };
  // Borrows what the context refers to.
  explicit Program(Context context) : context_(std::move(context)) {}

  // spec.parameters as a T (see parameters.h). Throws ConfigError naming every
  // mistake.
  template <class T>
  T Parameters() const {
    absl::StatusOr<T> parsed = ParseParameters<T>(context_.identity.parameters);
    if (!parsed.ok()) throw ConfigError(Message(parsed.status()));
    return *std::move(parsed);
  }

  // The ranks of one role, ascending. Throws ConfigError, with the roles that
  // there are, if the job has none of that name.
  std::vector<rpc::Peer> Role(std::string_view name) const;

  // This process.
  const rpc::Peer& self() const;

  // All ranks, ascending.
  const std::vector<rpc::Peer>& peers() const { return context_.peers; }

  // Goes to the metrics of this process, and with the next heartbeat to the
  // job's status.
  void Report(const ProgramReport& report);

  // True once this job, or this process, was told to stop: save what is to be
  // kept and return soon. Later, pending remote calls are cancelled.
  bool StopRequested() const { return context_.stop_requested.load(); }

  const Log& log() const { return context_.log; }
  const Identity& identity() const { return context_.identity; }

 private:
  Context context_;
  absl::Mutex mu_;
  absl::Time last_step_ ABSL_GUARDED_BY(mu_) = absl::Now();
};

// A role that a program needs.
struct RoleInfo {
  std::string name = {};
  std::string meaning = {};
  int64_t max_replicas = 0;  // 0: any number
  // It may have restart: Rank: the program goes on without one of its ranks.
  bool replaceable = false;
};

struct ProgramInfo {
  std::string meaning = {};  // one line
  // The role whose first rank runs the program; the other ranks serve until it
  // ends.
  std::string driver = {};
  // All of them; empty: any roles.
  std::vector<RoleInfo> roles = {};
  std::vector<ParameterInfo> parameters = {};  // Describe<T>()
  // What peers may create and call in every process of the job.
  rpc::Registry remotes = {};
};

struct NamedProgram {
  std::string name = {};
  std::function<void(Program&)> run;
  ProgramInfo info = {};
};

}  // namespace disttrain
