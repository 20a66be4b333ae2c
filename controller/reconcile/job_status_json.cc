// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <string>

#include "controller/reconcile/job_status.h"
#include "controller/reconcile/json_fields.h"
#include "controller/reconcile/rank_set.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

using json::At;
using json::Int;
using json::Integer;
using json::Text;

std::optional<absl::Time> TimeAt(const Json& object, const char* key) {
  return ParseTimestamp(Text(object, key));
}

// Decimal numbers travel as strings: Kubernetes' own types have no floats.
std::optional<double> NumberAt(const Json& object, const char* key) {
  const std::string text = Text(object, key);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    return std::nullopt;
  }
  return value;
}

void Put(Json& object, const char* key, const std::optional<absl::Time>& time) {
  if (time) object[key] = FormatTimestamp(*time);
}
void Put(Json& object, const char* key, const std::optional<int64_t>& number) {
  if (number) object[key] = *number;
}
void Put(Json& object, const char* key, const std::optional<double>& number) {
  if (number) object[key] = fmt::format("{:.6g}", *number);
}
void Put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

// {"3": 2}
std::map<int, int> CountsFrom(const Json& object) {
  std::map<int, int> counts;
  if (!object.is_object()) return counts;
  for (const auto& [key, value] : object.items()) {
    const std::set<int> rank = ParseRanks(key);
    const int count = Int(object, key.c_str());
    if (rank.size() == 1 && count > 0) counts[*rank.begin()] = count;
  }
  return counts;
}

Json ToJson(const std::map<int, int>& counts) {
  Json object = Json::object();
  for (const auto& [rank, count] : counts) {
    if (count > 0) object[std::to_string(rank)] = count;
  }
  return object;
}

Condition ConditionFrom(const Json& object) {
  Condition condition;
  condition.type = Text(object, "type");
  condition.status = Text(object, "status");
  condition.reason = Text(object, "reason");
  condition.message = Text(object, "message");
  condition.last_transition =
      TimeAt(object, "lastTransitionTime").value_or(absl::UnixEpoch());
  condition.observed_generation =
      Integer(object, "observedGeneration").value_or(0);
  return condition;
}

Json ToJson(const Condition& condition) {
  return {{"type", condition.type},
          {"status", condition.status},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastTransitionTime", FormatTimestamp(condition.last_transition)},
          {"observedGeneration", condition.observed_generation}};
}

RoleStatus RoleFrom(const Json& object) {
  RoleStatus role;
  role.name = Text(object, "name");
  role.desired = Int(object, "desired");
  role.active = Int(object, "active");
  role.ready = Int(object, "ready");
  role.succeeded = Int(object, "succeeded");
  role.failed = Int(object, "failed");
  role.succeeded_ranks = ParseRanks(Text(object, "succeededRanks"));
  role.incarnations = CountsFrom(At(object, "incarnations"));
  role.in_a_row = CountsFrom(At(object, "inARow"));
  const Json& times = At(object, "retryTimes");
  if (times.is_object()) {
    for (const auto& [key, value] : times.items()) {
      const std::set<int> rank = ParseRanks(key);
      const auto time = TimeAt(times, key.c_str());
      if (rank.size() == 1 && time) role.retry_times[*rank.begin()] = *time;
    }
  }
  return role;
}

Json ToJson(const RoleStatus& role) {
  Json object = {{"name", role.name},
                 {"desired", role.desired},
                 {"active", role.active},
                 {"ready", role.ready},
                 {"succeeded", role.succeeded},
                 {"failed", role.failed},
                 {"succeededRanks", FormatRanks(role.succeeded_ranks)}};
  if (!role.incarnations.empty()) {
    object["incarnations"] = ToJson(role.incarnations);
  }
  if (!role.in_a_row.empty()) object["inARow"] = ToJson(role.in_a_row);
  for (const auto& [rank, time] : role.retry_times) {
    object["retryTimes"][std::to_string(rank)] = FormatTimestamp(time);
  }
  return object;
}

FailureRecord FailureFrom(const Json& object) {
  FailureRecord record;
  record.attempt = Int(object, "attempt");
  record.rank = Int(object, "rank");
  record.role = Text(object, "role");
  record.pod = Text(object, "pod");
  record.node = Text(object, "node");
  record.time = TimeAt(object, "time").value_or(absl::UnixEpoch());
  record.root_cause = json::Bool(object, "rootCause");
  if (const auto code = Integer(object, "exitCode")) {
    record.exit_code = static_cast<int>(*code);
  }
  record.signal = Text(object, "signal");
  record.reason = Text(object, "reason");
  record.message = Text(object, "message");
  record.action = Text(object, "action");
  record.counted = json::Bool(object, "counted");
  return record;
}

Json ToJson(const FailureRecord& record) {
  Json object = {{"attempt", record.attempt},
                 {"rank", record.rank},
                 {"role", record.role},
                 {"pod", record.pod},
                 {"time", FormatTimestamp(record.time)},
                 {"rootCause", record.root_cause},
                 {"reason", record.reason},
                 {"message", record.message},
                 {"action", record.action},
                 {"counted", record.counted}};
  Put(object, "node", record.node);
  Put(object, "signal", record.signal);
  if (record.exit_code) object["exitCode"] = *record.exit_code;
  return object;
}

Training TrainingFrom(const Json& object) {
  Training training;
  training.step = Integer(object, "step");
  training.total_steps = Integer(object, "totalSteps");
  training.epoch = Integer(object, "epoch");
  training.reward = NumberAt(object, "reward");
  training.best_reward = NumberAt(object, "bestReward");
  training.episode_reward = NumberAt(object, "episodeReward");
  training.loss = NumberAt(object, "loss");
  training.steps_per_second = NumberAt(object, "stepsPerSecond");
  training.samples_per_second = NumberAt(object, "samplesPerSecond");
  training.last_report = TimeAt(object, "lastReportTime");
  training.last_step = TimeAt(object, "lastStepTime");
  training.checkpoint_step = Integer(object, "checkpointStep");
  training.checkpoint_time = TimeAt(object, "checkpointTime");
  training.target_reports = Int(object, "targetReports");
  return training;
}

void PutEstimate(const Training& training, Json& object) {
  if (!training.step || training.total_steps.value_or(0) <= 0) return;
  const int64_t total = *training.total_steps;
  const int64_t done = std::clamp<int64_t>(*training.step, 0, total);
  object["progressPercent"] = static_cast<int64_t>(
      100.0 * static_cast<double>(done) / static_cast<double>(total));
  const double speed = training.steps_per_second.value_or(0);
  if (speed > 0) {
    const double eta = std::ceil(static_cast<double>(total - done) / speed);
    object["etaSeconds"] = static_cast<int64_t>(std::min(eta, 1e12));
  }
}

Json ToJson(const Training& training) {
  Json object = Json::object();
  Put(object, "step", training.step);
  Put(object, "totalSteps", training.total_steps);
  Put(object, "epoch", training.epoch);
  Put(object, "reward", training.reward);
  Put(object, "bestReward", training.best_reward);
  Put(object, "episodeReward", training.episode_reward);
  Put(object, "loss", training.loss);
  Put(object, "stepsPerSecond", training.steps_per_second);
  Put(object, "samplesPerSecond", training.samples_per_second);
  Put(object, "lastReportTime", training.last_report);
  Put(object, "lastStepTime", training.last_step);
  Put(object, "checkpointStep", training.checkpoint_step);
  Put(object, "checkpointTime", training.checkpoint_time);
  if (training.target_reports > 0) {
    object["targetReports"] = training.target_reports;
  }
  PutEstimate(training, object);
  return object;
}

RestartCounts RestartsFrom(const Json& object) {
  RestartCounts restarts;
  restarts.total = Int(object, "total");
  restarts.counted = Int(object, "counted");
  restarts.disruptions = Int(object, "disruptions");
  restarts.in_a_row = Int(object, "inARow");
  restarts.last_reason = Text(object, "lastReason");
  restarts.next_retry = TimeAt(object, "nextRetryTime");
  return restarts;
}

Json ToJson(const RestartCounts& restarts) {
  Json object = {{"total", restarts.total},
                 {"counted", restarts.counted},
                 {"disruptions", restarts.disruptions},
                 {"inARow", restarts.in_a_row}};
  Put(object, "lastReason", restarts.last_reason);
  Put(object, "nextRetryTime", restarts.next_retry);
  return object;
}

}  // namespace

JobStatus StatusFromJson(const Json& object) {
  JobStatus status;
  status.observed_generation =
      Integer(object, "observedGeneration").value_or(0);
  status.phase = Text(object, "phase");
  status.message = Text(object, "message");
  for (const Json& element : json::Array(object, "conditions")) {
    status.conditions.push_back(ConditionFrom(element));
  }
  status.start_time = TimeAt(object, "startTime");
  status.completion_time = TimeAt(object, "completionTime");
  status.attempt = Int(object, "attempt");
  status.attempt_start_time = TimeAt(object, "attemptStartTime");
  status.active_seconds = Integer(object, "activeSeconds").value_or(0);
  status.restarts = RestartsFrom(At(object, "restarts"));
  status.ready_text = Text(object, "readyText");
  for (const Json& element : json::Array(object, "roles")) {
    status.roles.push_back(RoleFrom(element));
  }
  status.template_hash = Text(object, "templateHash");
  if (At(object, "resolved").is_object()) {
    status.resolved = At(object, "resolved");
  }
  status.training = TrainingFrom(At(object, "training"));
  for (const Json& element : json::Array(object, "failures")) {
    status.failures.push_back(FailureFrom(element));
  }
  return status;
}

Json ToJson(const JobStatus& status) {
  Json object = {{"observedGeneration", status.observed_generation},
                 {"phase", status.phase},
                 {"message", status.message},
                 {"attempt", status.attempt},
                 {"activeSeconds", status.active_seconds},
                 {"restarts", ToJson(status.restarts)},
                 {"readyText", status.ready_text},
                 {"conditions", Json::array()},
                 {"roles", Json::array()}};
  for (const Condition& condition : status.conditions) {
    object["conditions"].push_back(ToJson(condition));
  }
  for (const RoleStatus& role : status.roles) {
    object["roles"].push_back(ToJson(role));
  }
  Put(object, "startTime", status.start_time);
  Put(object, "completionTime", status.completion_time);
  Put(object, "attemptStartTime", status.attempt_start_time);
  Put(object, "templateHash", status.template_hash);
  if (!status.resolved.empty()) object["resolved"] = status.resolved;
  const Json training = ToJson(status.training);
  if (!training.empty()) object["training"] = training;
  for (const FailureRecord& record : status.failures) {
    object["failures"].push_back(ToJson(record));
  }
  return object;
}

}  // namespace disttrain
