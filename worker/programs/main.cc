// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/main.h"

#include <cstdio>
#include <filesystem>

#include "ATen/Parallel.h"
#include "absl/synchronization/mutex.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/contract/env.h"
#include "proto/runtime/signals.h"
#include "proto/runtime/status.h"
#include "worker/programs/catalogue.h"
#include "worker/programs/command_line.h"
#include "worker/programs/worker_process.h"

namespace disttrain {
namespace {

// Everything that can be checked before the ranks meet.
struct Start {
  Identity identity;
  const NamedProgram* program = nullptr;
};

absl::StatusOr<Start> Prepare(const std::vector<NamedProgram>& programs) {
  Start start;
  ASSIGN_OR_RETURN(start.identity, IdentityFromEnv(ProcessEnv));
  ASSIGN_OR_RETURN(start.program,
                   FindProgram(programs, start.identity.program));
  RETURN_IF_ERROR(CheckParameters(start.program->info.parameters,
                                  start.identity.parameters));
  return start;
}

// Ends a process that knows too little of itself to meet the others.
int LeaveUnprepared(const absl::Status& status, const Log& log) {
  const Ending ending = EndingFor(status);
  log.Error("leaving", {{"reason", ending.cause},
                        {"exit_code", static_cast<int>(ending.code)}});
  LeavingRank rank;
  rank.path =
      ProcessEnv(env::kTerminationMessagePath).value_or(env::kTerminationLog);
  rank.role = ProcessEnv(env::kRole).value_or("");
  if (const auto text = ProcessEnv(env::kRank))
    rank.rank = std::atoi(text->c_str());
  const absl::Status written = WriteTerminationMessage(rank, ending);
  if (!written.ok()) log.Error("no termination message", written);
  return static_cast<int>(ending.code);
}

int RunJob(const std::vector<NamedProgram>& programs) {
  BlockSignals();
  // Distributions build abseil so that each Lock looks for cycles. The tests
  // do; a worker does not pay for it in every call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  LogOptions options;
  const auto format = LogFormatFrom(ProcessEnv(env::kLogFormat));
  if (format.ok()) options.format = *format;
  const Log log(options);
  if (!format.ok()) return LeaveUnprepared(format.status(), log);

  const absl::StatusOr<Start> start = Prepare(programs);
  if (!start.ok()) return LeaveUnprepared(start.status(), log);
  // Ranks share a machine's cores: one thread each, unless told otherwise.
  if (!ProcessEnv("OMP_NUM_THREADS")) at::set_num_threads(1);

  const Identity& identity = start->identity;
  WorkerProcess process(identity, *start->program,
                        log.With({{"job", identity.job},
                                  {"role", identity.role},
                                  {"rank", identity.rank},
                                  {"attempt", identity.attempt}}));
  process.Run();
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace

int Main(int argc, char** argv, const std::vector<NamedProgram>& programs) {
  const absl::StatusOr<Command> command = ParseCommandLine(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (!command.ok()) {
    fmt::print(stderr, "{}\n", Message(command.status()));
    return static_cast<int>(ExitCode::kUsage);
  }
  const std::string binary =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "worker";
  switch (*command) {
    case Command::kListPrograms:
      fmt::print("{}\n", ListPrograms(programs).dump(2));
      return 0;
    case Command::kHelp:
      fmt::print("{}", HelpText(binary));
      return 0;
    case Command::kVersion:
      fmt::print("{} {}\n", binary, DISTTRAIN_VERSION);
      return 0;
    case Command::kRun:
      break;
  }
  return RunJob(programs);
}

}  // namespace disttrain
