// SPDX-License-Identifier: Apache-2.0
#include "controller/local/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// "<folder>/dtj-XXXXXX/d<rank>-<attempt>-<incarnation>.sock" must stay well
// below the 107 characters of a socket's path.
constexpr size_t kMaxSocketParent = 40;

absl::Status FileError(const std::string& path, const std::string& what) {
  return absl::UnavailableError(fmt::format("{}: {}", path, what));
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FileError(path, error.message());
  return absl::OkStatus();
}

// Whole or not at all, also if the machine stops in between.
absl::Status WriteFile(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary);
    file << text << "\n";
    file.close();
    if (!file) return FileError(temporary, std::strerror(errno));
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) return FileError(path, error.message());
  return absl::OkStatus();
}

Json ReadJsonFile(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

Json ToJson(const StartedPod& pod) {
  return {{"pod", pod.name},
          {"role", pod.role},
          {"roleIndex", pod.role_index},
          {"rank", pod.rank},
          {"attempt", pod.attempt},
          {"incarnation", pod.incarnation},
          {"log", pod.log_path}};
}

std::string Text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

bool IsLocked(const std::string& run) {
  const UniqueFd fd(open((run + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  return fd.ok() && flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

std::optional<std::string> FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

absl::StatusOr<std::string> RunsFolder(const GetEnv& get_env) {
  const auto state = get_env("XDG_STATE_HOME");
  if (state.has_value() && !state->empty()) return *state + "/disttrain/runs";
  const auto home = get_env("HOME");
  if (home.has_value() && !home->empty()) {
    return *home + "/.local/state/disttrain/runs";
  }
  return absl::FailedPreconditionError(
      "neither XDG_STATE_HOME nor HOME is set: there is no place for the run");
}

absl::StatusOr<std::string> MakeSocketFolder(const GetEnv& get_env) {
  std::vector<std::string> parents;
  const auto runtime = get_env("XDG_RUNTIME_DIR");
  if (runtime.has_value() && !runtime->empty() && runtime->front() == '/' &&
      runtime->size() <= kMaxSocketParent) {
    parents.push_back(*runtime);
  }
  parents.push_back("/tmp");
  for (const std::string& parent : parents) {
    std::string folder = parent + "/dtj-XXXXXX";
    if (mkdtemp(folder.data()) != nullptr) return folder;
  }
  return FileError("/tmp", std::strerror(errno));
}

absl::StatusOr<RunDirectory> RunDirectory::Create(const std::string& runs,
                                                  const std::string& job,
                                                  const std::string& uid,
                                                  const std::string& log_dir) {
  RunDirectory run;
  run.path_ = fmt::format("{}/{}-{}", runs, job, uid);
  std::error_code error;
  run.log_dir_ = log_dir.empty() ? run.path_ + "/logs"
                                 : fs::absolute(log_dir, error).string();
  RETURN_IF_ERROR(MakeFolder(run.message_dir()));
  RETURN_IF_ERROR(MakeFolder(run.log_dir_));
  fs::permissions(run.path_, fs::perms::owner_all, error);
  if (error) return FileError(run.path_, error.message());
  const std::string lock = run.path_ + "/lock";
  run.lock_ = UniqueFd(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!run.lock_.ok() || flock(run.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return FileError(lock, std::strerror(errno));
  }
  RETURN_IF_ERROR(WriteFile(
      run.path_ + "/run.json",
      Text({{"job", job},
            {"uid", uid},
            {"startTime", absl::FormatTime(absl::RFC3339_full, absl::Now(),
                                           absl::UTCTimeZone())},
            {"logDir", run.log_dir_}})));
  return run;
}

absl::Status RunDirectory::AddPod(const StartedPod& pod) const {
  const std::string path = path_ + "/pods.jsonl";
  std::ofstream file(path, std::ios::app);
  file << ToJson(pod).dump(-1, ' ', false, Json::error_handler_t::replace)
       << "\n";
  file.close();
  if (!file) return FileError(path, std::strerror(errno));
  return absl::OkStatus();
}

absl::Status RunDirectory::WriteJob(const Json& job) const {
  return WriteFile(path_ + "/job.json", Text(job));
}

std::vector<RunInfo> ListRuns(const std::string& runs) {
  std::vector<RunInfo> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs, error)) {
    RunInfo run;
    run.name = entry.path().filename();
    run.path = entry.path();
    const Json info = ReadJsonFile(run.path + "/run.json");
    std::string parse_error;
    if (!info.contains("job") || !info["job"].is_string() ||
        !absl::ParseTime(absl::RFC3339_full, info.value("startTime", ""),
                         &run.started, &parse_error)) {
      continue;
    }
    run.job = info["job"];
    run.running = IsLocked(run.path);
    found.push_back(std::move(run));
  }
  std::sort(found.begin(), found.end(), [](const RunInfo& a, const RunInfo& b) {
    return a.started > b.started;
  });
  return found;
}

absl::StatusOr<std::vector<StartedPod>> ReadPods(const RunInfo& run) {
  std::vector<StartedPod> pods;
  std::ifstream file(run.path + "/pods.jsonl");
  std::string line;
  while (std::getline(file, line)) {
    try {
      const Json json = Json::parse(line);
      pods.push_back({.name = json.at("pod"),
                      .role = json.at("role"),
                      .role_index = json.at("roleIndex"),
                      .rank = json.at("rank"),
                      .attempt = json.at("attempt"),
                      .incarnation = json.at("incarnation"),
                      .log_path = json.at("log")});
    } catch (const Json::exception& error) {
      return FileError(run.path + "/pods.jsonl", error.what());
    }
  }
  return pods;
}

Json ReadJob(const RunInfo& run) {
  return ReadJsonFile(run.path + "/job.json");
}

void PruneRuns(const std::string& runs, size_t keep) {
  const std::vector<RunInfo> all = ListRuns(runs);
  for (size_t i = keep; i < all.size(); ++i) {
    std::error_code error;  // another launcher may be removing it, too
    if (!all[i].running) fs::remove_all(all[i].path, error);
  }
}

}  // namespace disttrain
