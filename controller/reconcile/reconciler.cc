// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/reconciler.h"

#include <algorithm>
#include <utility>

#include "controller/api/parse_job.h"
#include "controller/reconcile/json_fields.h"
#include "controller/reconcile/rank_set.h"
#include "controller/reconcile/root_cause.h"
#include "controller/reconcile/slow_start.h"
#include "fmt/format.h"
#include "proto/contract/labels.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

constexpr absl::Duration kConflictRetry = absl::Seconds(5);
constexpr absl::Duration kQuotaRetry = absl::Seconds(30);

Json Resolved(const Job& job, int attempt, const PodContext& context) {
  Json processes = Json::object();
  int pods = 0;
  for (const Role& role : job.spec.roles) {
    processes[role.name] = ProcessesPerPod(role, job.spec.main_container);
    if (role.start_after.empty()) pods += role.replicas;
  }
  return {{"minMember", job.spec.scheduling.min_member.value_or(pods)},
          {"gang", "None"},
          {"processesPerPod", processes},
          {"rendezvous", RendezvousAddress(job, attempt, context)}};
}

bool IsOurs(const Json& object, const Job& job) {
  return ControllerOf(object).second == job.uid;
}

std::optional<int> SelectedAttempt(const Json& service) {
  const std::set<int> attempt = ParseRanks(json::Text(
      json::At(json::At(service, "spec"), "selector"), label::kAttempt));
  if (attempt.size() != 1) return std::nullopt;
  return *attempt.begin();
}

absl::Time NextPoll(const Job& job, const Observed& observed, int attempt) {
  if (!observed.report || observed.report->attempt != attempt) {
    return absl::InfinitePast();
  }
  const bool running =
      observed.report->progress.state() == v1::Progress::STATE_RUNNING;
  return observed.report->time +
         absl::Seconds(
             running ? std::max(job.spec.reporting.interval_seconds, 1) : 1);
}

bool NeedsDryRun(const Job& job, const JobStatus& status,
                 const std::string& hash) {
  return status.template_hash != hash && !IsTerminal(status) &&
         !job.spec.suspend && !job.being_deleted;
}

}  // namespace

Reconciler::Reconciler(KubeApi& api, const Clock& clock, Caches caches,
                       ProgressStore& reports, ProgressSource* progress,
                       ReconcilerOptions options)
    : api_(api),
      clock_(clock),
      caches_(caches),
      reports_(reports),
      progress_(progress),
      options_(std::move(options)),
      events_(api, clock) {}

SyncResult Reconciler::Sync(const std::string& key) {
  const auto [name_space, name] = SplitKey(key);
  const std::optional<Json> object = caches_.jobs.Get(name_space, name);
  if (!object) return Gone(key);
  SyncResult result;
  const ParsedJob parsed = ParseAndValidate(*object);
  const Job& job = parsed.job;
  Memory memory = Recall(key, job.uid);
  Observed observed = Observe(job, memory);
  const JobStatus before = StatusFromJson(job.status);
  if (!parsed.errors.empty()) {
    observed.rejection = Rejection{RejectionReason(parsed.errors),
                                   Message(ToStatus(parsed.errors))};
  } else {
    observed.resolved = Resolved(job, before.attempt, options_.pods);
    if (NeedsDryRun(job, before, observed.template_hash)) {
      result.status = DryRun(job, observed);
      if (!result.status.ok()) return result;
    }
  }
  const Decision decision = Plan(job, observed, clock_.Now());
  result.reason = decision.reason;
  result.requeue_at = decision.requeue_at;
  result.poll = decision.poll;
  result.poll_at = NextPoll(job, observed, decision.status.attempt);
  if (decision.stale) {
    result.status = absl::AbortedError(decision.reason);
    return result;
  }
  if (ToJson(decision.status) != ToJson(before)) {
    result.status = WriteStatus(*object, decision.status);
    if (!result.status.ok()) return result;
  }
  // An event that is lost costs a line in `kubectl describe`, nothing else.
  for (const EventText& event : decision.events) {
    events_.Record(*object, event).IgnoreError();
  }
  const absl::Status acted = Act(job, decision.actions);
  const bool news = acted != memory.last_error;
  memory.last_error = acted;
  Keep(key, std::move(memory));
  After(acted, news, result);
  return result;
}

SyncResult Reconciler::Gone(const std::string& key) {
  const Memory memory = Recall(key, "");
  reports_.Forget(memory.uid);
  const absl::MutexLock lock(&mu_);
  memory_.erase(key);
  SyncResult result;
  result.gone = true;
  return result;
}

// When to look again after actions that ended with `acted`; `news`: the status
// does not say so yet.
void Reconciler::After(const absl::Status& acted, bool news,
                       SyncResult& result) const {
  const bool conflict = absl::IsAlreadyExists(acted);
  if (acted.ok() || conflict || absl::IsResourceExhausted(acted)) {
    absl::Duration wait = absl::InfiniteDuration();
    if (news) {
      wait = absl::ZeroDuration();
    } else if (!acted.ok()) {
      wait = conflict ? kConflictRetry : kQuotaRetry;
    }
    result.requeue_at = std::min(result.requeue_at, clock_.Now() + wait);
  } else {
    result.status = acted;
  }
}

Observed Reconciler::Observe(const Job& job, Memory& memory) const {
  Observed observed;
  std::map<std::string, absl::Time> since;
  for (const Json& pod : caches_.pods.OwnedBy(job.uid)) {
    observed.pods.push_back(PodViewFromJson(pod));
    const PodView& view = observed.pods.back();
    if (!IsConfigError(view)) continue;
    const auto known = memory.config_error_since.find(view.uid);
    since[view.uid] =
        known == memory.config_error_since.end() ? clock_.Now() : known->second;
  }
  memory.config_error_since = since;
  observed.config_error_since = std::move(since);
  const auto service = caches_.services.Get(job.namespace_, job.name);
  if (service && IsOurs(*service, job)) {
    observed.service_attempt = SelectedAttempt(*service).value_or(-1);
  }
  observed.report = reports_.Get(job.uid);
  observed.has_progress_source = progress_ != nullptr;
  observed.template_hash = TemplateHash(job.spec);
  observed.last_error = memory.last_error;
  observed.node_lost_grace = options_.node_lost_grace;
  return observed;
}

absl::Status Reconciler::DryRun(const Job& job, Observed& observed) {
  absl::Status status =
      api_.Create(Resource::kPods,
                  PodFor(job, 0, 0, StatusFromJson(job.status).attempt, 0,
                         options_.pods),
                  /*dry_run=*/true)
          .status();
  if (absl::IsInvalidArgument(status)) {
    observed.rejection = Rejection{
        kInvalidPodTemplate, "spec.roles[0].template: " + Message(status)};
    return absl::OkStatus();
  }
  // What may heal by itself shows, and heals, when pods are made.
  if (absl::IsAlreadyExists(status) || absl::IsResourceExhausted(status) ||
      absl::IsPermissionDenied(status)) {
    return absl::OkStatus();
  }
  return status;
}

absl::Status Reconciler::WriteStatus(const Json& object,
                                     const JobStatus& status) {
  Json written = object;
  written["status"] = ToJson(status);
  const absl::StatusOr<Json> stored =
      api_.UpdateStatus(Resource::kDistTrainingJobs, written);
  if (stored.ok()) caches_.jobs.Remember(*stored);
  return stored.status();
}

absl::Status Reconciler::Act(const Job& job,
                             const std::vector<Action>& actions) {
  std::vector<CreatePod> creates;
  absl::Status first;
  for (const Action& action : actions) {
    if (const auto* create = std::get_if<CreatePod>(&action)) {
      creates.push_back(*create);
      continue;
    }
    absl::Status status = ActOne(job, action);
    if (first.ok()) first = std::move(status);
  }
  // Pods without their Service would not find each other.
  if (!first.ok()) return first;
  return SlowStart(creates.size(),
                   [&](size_t i) { return Create(job, creates[i]); });
}

absl::Status Reconciler::ActOne(const Job& job, const Action& action) {
  if (const auto* pod = std::get_if<DeletePod>(&action)) {
    return Delete(job, *pod);
  }
  if (const auto* service = std::get_if<EnsureService>(&action)) {
    return Ensure(job, service->attempt);
  }
  if (const auto* stop = std::get_if<StopTraining>(&action)) {
    // Best effort: SIGTERM, which follows, says the same.
    if (progress_ != nullptr) {
      progress_
          ->Stop(job, stop->attempt,
                 RendezvousAddress(job, stop->attempt, options_.pods),
                 /*save=*/true, stop->reason)
          .IgnoreError();
    }
    return absl::OkStatus();
  }
  const bool whole_job = std::holds_alternative<DeleteJob>(action);
  DeleteOptions options;
  if (whole_job) options.uid = job.uid;
  absl::Status status =
      api_.Delete(whole_job ? Resource::kDistTrainingJobs : Resource::kServices,
                  job.namespace_, job.name, options);
  if (absl::IsNotFound(status)) return absl::OkStatus();
  if (status.ok() && !whole_job) {
    if (const auto known = caches_.services.Get(job.namespace_, job.name)) {
      caches_.services.Forget(job.namespace_, job.name,
                              json::Text(json::At(*known, "metadata"), "uid"));
    }
  }
  return status;
}

absl::Status Reconciler::Create(const Job& job, const CreatePod& create) {
  const Json pod = PodFor(job, create.role, create.index, create.attempt,
                          create.incarnation, options_.pods);
  const absl::StatusOr<Json> created = api_.Create(Resource::kPods, pod);
  if (created.ok()) {
    caches_.pods.Remember(*created);
    return absl::OkStatus();
  }
  if (!absl::IsAlreadyExists(created.status())) return created.status();
  const std::string name = json::Text(pod["metadata"], "name");
  const auto there = api_.Get(Resource::kPods, job.namespace_, name);
  if (!there.ok()) return there.status();
  if (IsOurs(*there, job)) {
    // Ours, from before our cache knew of it.
    caches_.pods.Remember(*there);
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(fmt::format(
      "pod {}/{} exists and does not belong to this job; delete it or rename "
      "the job",
      job.namespace_, name));
}

absl::Status Reconciler::Delete(const Job& job, const DeletePod& pod) {
  DeleteOptions options;
  options.uid = pod.uid;
  absl::Status status =
      api_.Delete(Resource::kPods, job.namespace_, pod.name, options);
  // Gone, or another pod has its name by now.
  if (absl::IsNotFound(status) || absl::IsAborted(status)) {
    return absl::OkStatus();
  }
  return status;
}

absl::Status Reconciler::Ensure(const Job& job, int attempt) {
  const Json service = ServiceFor(job, attempt);
  const auto there = api_.Get(Resource::kServices, job.namespace_, job.name);
  absl::StatusOr<Json> stored = there;
  if (there.ok() && !IsOurs(*there, job)) {
    return absl::AlreadyExistsError(fmt::format(
        "service {}/{} exists and does not belong to this job; delete it or "
        "rename the job",
        job.namespace_, job.name));
  }
  if (there.ok()) {
    stored = api_.Apply(Resource::kServices, service);
  } else if (absl::IsNotFound(there.status())) {
    stored = api_.Create(Resource::kServices, service);
  }
  if (stored.ok()) caches_.services.Remember(*stored);
  // Made by ourselves a moment ago: the next look will find it.
  if (absl::IsAlreadyExists(stored.status())) {
    return absl::AbortedError(Message(stored.status()));
  }
  return stored.status();
}

Reconciler::Memory Reconciler::Recall(const std::string& key,
                                      const std::string& uid) {
  const absl::MutexLock lock(&mu_);
  const auto found = memory_.find(key);
  // Another job of the same name inherits nothing.
  if (found != memory_.end() && (uid.empty() || found->second.uid == uid)) {
    return found->second;
  }
  Memory memory;
  memory.uid = uid;
  return memory;
}

void Reconciler::Keep(const std::string& key, Memory memory) {
  const absl::MutexLock lock(&mu_);
  memory_[key] = std::move(memory);
}

}  // namespace disttrain
