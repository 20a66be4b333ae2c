// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "controller/local/unique_fd.h"
#include "nlohmann/json.hpp"

// Where local runs keep what outlives them:
//   <runs>/<job>-<uid>/run.json     what was started: job, time, log folder
//                      pods.jsonl   one line per started process
//                      logs/        <pod>.log, unless --log-dir says otherwise
//                      messages/    termination messages
//                      job.json     the job with its last status
//                      lock         locked while the run lasts
namespace disttrain {

using GetEnv = std::function<std::optional<std::string>(const char*)>;
// The GetEnv of this process.
std::optional<std::string> FromEnvironment(const char* name);

// A pod whose process is about to start, for whoever shows its output.
struct StartedPod {
  std::string name = {};
  std::string role = {};
  int role_index = 0;
  int rank = 0;
  int attempt = 0;
  int incarnation = 0;
  std::string log_path = {};
};

// "$XDG_STATE_HOME/disttrain/runs", by default "$HOME/.local/state/…".
// FAILED_PRECONDITION if neither variable is set.
absl::StatusOr<std::string> RunsFolder(const GetEnv& get_env);

// A new folder with mode 0700 for the sockets of a run, in $XDG_RUNTIME_DIR if
// that is usable and short enough for a socket's path, else in /tmp. Whoever
// gets it removes it.
absl::StatusOr<std::string> MakeSocketFolder(const GetEnv& get_env);

// The folder of a run that is going on.
//
// Threads: not thread-safe.
class RunDirectory {
 public:
  // Makes "<runs>/<job>-<uid>" and locks it. `log_dir` "": its own.
  // Errors: a folder cannot be made or written; the message names it.
  static absl::StatusOr<RunDirectory> Create(const std::string& runs,
                                             const std::string& job,
                                             const std::string& uid,
                                             const std::string& log_dir);

  const std::string& path() const { return path_; }
  const std::string& log_dir() const { return log_dir_; }
  std::string message_dir() const { return path_ + "/messages"; }

  absl::Status AddPod(const StartedPod& pod) const;
  absl::Status WriteJob(const nlohmann::json& job) const;

 private:
  std::string path_;
  std::string log_dir_;
  UniqueFd lock_;
};

// A run that is kept.
struct RunInfo {
  std::string name;  // of its folder: "<job>-<uid>"
  std::string path;
  std::string job;
  absl::Time started;
  bool running = false;  // its launcher lives
};

// Newest first. Folders that are no runs are left out.
std::vector<RunInfo> ListRuns(const std::string& runs);

// The processes of a run, in the order of their start.
absl::StatusOr<std::vector<StartedPod>> ReadPods(const RunInfo& run);

// The job with its last status; {} if the launcher did not live to write it.
nlohmann::json ReadJob(const RunInfo& run);

// Removes the oldest finished runs, so that `keep` are left.
void PruneRuns(const std::string& runs, size_t keep);

}  // namespace disttrain
