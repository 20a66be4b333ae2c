// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/job_status.h"

#include <algorithm>
#include <utility>

namespace disttrain {
namespace {

// Keeps the whole status far below etcd's limit of an object's size.
constexpr size_t kMaxMessage = 1024;

}  // namespace

const Condition* FindCondition(const JobStatus& status,
                               const std::string& type) {
  const auto found =
      std::find_if(status.conditions.begin(), status.conditions.end(),
                   [&type](const Condition& c) { return c.type == type; });
  return found == status.conditions.end() ? nullptr : &*found;
}

bool IsTrue(const JobStatus& status, const std::string& type) {
  const Condition* found = FindCondition(status, type);
  return found != nullptr && found->status == "True";
}

bool IsTerminal(const JobStatus& status) {
  return IsTrue(status, condition::kComplete) ||
         IsTrue(status, condition::kFailed);
}

void SetCondition(JobStatus& status, Condition condition, absl::Time now) {
  condition.observed_generation = status.observed_generation;
  condition.message = Shorten(std::move(condition.message), kMaxMessage);
  condition.last_transition = now;
  for (Condition& known : status.conditions) {
    if (known.type != condition.type) continue;
    if (known.status == condition.status) {
      condition.last_transition = known.last_transition;
    } else if (known.type == condition::kRunning && known.status == "True") {
      status.active_seconds =
          absl::ToInt64Seconds(ActiveTime(status, now) + absl::Seconds(0.5));
    }
    known = std::move(condition);
    return;
  }
  status.conditions.push_back(std::move(condition));
}

absl::Duration ActiveTime(const JobStatus& status, absl::Time now) {
  absl::Duration active = absl::Seconds(status.active_seconds);
  const Condition* running = FindCondition(status, condition::kRunning);
  if (running != nullptr && running->status == "True") {
    active += std::max(now - running->last_transition, absl::ZeroDuration());
  }
  return active;
}

void AddFailure(JobStatus& status, FailureRecord record) {
  record.message = Shorten(std::move(record.message), kMaxMessage);
  status.failures.insert(status.failures.begin(), std::move(record));
  if (status.failures.size() > kMaxFailureRecords) {
    status.failures.resize(kMaxFailureRecords);
  }
}

std::string FormatTimestamp(absl::Time time) {
  const absl::Time whole_ms = absl::FromUnixMillis(absl::ToUnixMillis(time));
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", whole_ms,
                          absl::UTCTimeZone());
}

std::optional<absl::Time> ParseTimestamp(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return std::nullopt;
  }
  return time;
}

std::string Shorten(std::string text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  // Continuation bytes are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  text.resize(end);
  return text;
}

}  // namespace disttrain
