// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "controller/api/job.h"

// status of a DistTrainingJob as plain data, and its JSON form. Everything that
// must survive a restart of the controller is in here.
namespace disttrain {

namespace condition {
inline constexpr char kAccepted[] = "Accepted";
inline constexpr char kScheduled[] = "Scheduled";
inline constexpr char kRunning[] = "Running";
inline constexpr char kSuspended[] = "Suspended";
inline constexpr char kComplete[] = "Complete";
inline constexpr char kFailed[] = "Failed";
}  // namespace condition

// A metav1.Condition.
struct Condition {
  std::string type;
  std::string status = "Unknown";  // True | False | Unknown
  std::string reason = {};
  std::string message = {};
  absl::Time last_transition = {};  // when `status` last changed
  int64_t observed_generation = 0;
};

struct RoleStatus {
  std::string name;
  // Pods: of the current attempt, by what they do now.
  int desired = 0;
  int active = 0;
  int ready = 0;
  int succeeded = 0;
  int failed = 0;
  // Global ranks that are done in this attempt; they are never started again.
  std::set<int> succeeded_ranks;
  // For roles with restart: Rank, by the rank of the pod's first process;
  // non-zero only. Written before acting.
  std::map<int, int> incarnations;
  // Failures in a row, for the backoff.
  std::map<int, int> in_a_row;
  // Not started again before.
  std::map<int, absl::Time> retry_times;
};

struct RestartCounts {
  int total = 0;
  int counted = 0;      // took from failurePolicy.maxRestarts
  int disruptions = 0;  // took from failurePolicy.maxDisruptions
  int in_a_row = 0;     // without a healthy period between them
  std::string last_reason;
  std::optional<absl::Time> next_retry;
};

struct FailureRecord {
  int attempt = 0;
  int rank = 0;
  std::string role;
  std::string pod;
  std::string node;
  absl::Time time;
  bool root_cause = false;
  std::optional<int> exit_code;
  std::string signal;  // "KILL"; "": none
  std::string reason;
  std::string message;
  std::string action;  // Fail | Restart | RestartFree | Ignore
  bool counted = false;
};

struct Training {
  std::optional<int64_t> step;
  std::optional<int64_t> total_steps;
  std::optional<int64_t> epoch;
  std::optional<double> reward;
  std::optional<double> best_reward;
  std::optional<double> episode_reward;
  std::optional<double> loss;
  std::optional<double> steps_per_second;
  std::optional<double> samples_per_second;
  std::optional<absl::Time> last_report;
  // When `step` last grew.
  std::optional<absl::Time> last_step;
  std::optional<int64_t> checkpoint_step;
  std::optional<absl::Time> checkpoint_time;
  // Reports in a row that met successPolicy.metric.
  int target_reports = 0;
};

struct JobStatus {
  int64_t observed_generation = 0;
  std::string phase;
  std::string message;
  std::vector<Condition> conditions;
  std::optional<absl::Time> start_time;
  std::optional<absl::Time> completion_time;
  int attempt = 0;
  std::optional<absl::Time> attempt_start_time;
  int64_t active_seconds = 0;
  RestartCounts restarts;
  std::string ready_text;
  std::vector<RoleStatus> roles;
  std::string template_hash;
  Json resolved = Json::object();
  Training training;
  std::vector<FailureRecord> failures;  // newest first
};

inline constexpr size_t kMaxFailureRecords = 10;

// Tolerant: what is missing or of a wrong type keeps its default.
JobStatus StatusFromJson(const Json& status);
Json ToJson(const JobStatus& status);

// nullptr if there is none.
const Condition* FindCondition(const JobStatus& status,
                               const std::string& type);
bool IsTrue(const JobStatus& status, const std::string& type);
// Complete or Failed: sticky.
bool IsTerminal(const JobStatus& status);

// Sets or adds a condition; its transition time moves only if its status does.
// Leaving Running adds the time spent in it to active_seconds.
void SetCondition(JobStatus& status, Condition condition, absl::Time now);

// Time in Running so far, over all attempts.
absl::Duration ActiveTime(const JobStatus& status, absl::Time now);

// Puts `record` first and drops what is older than kMaxFailureRecords.
void AddFailure(JobStatus& status, FailureRecord record);

// RFC 3339 in UTC, to the millisecond.
std::string FormatTimestamp(absl::Time time);
std::optional<absl::Time> ParseTimestamp(const std::string& text);

// At most `bytes` bytes, cut at a border of UTF-8 characters.
std::string Shorten(std::string text, size_t bytes);

}  // namespace disttrain
