// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/controller.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/api/parse_job.h"
#include "controller/kube/informer.h"
#include "controller/reconcile/progress_store.h"
#include "controller/reconcile/prune.h"
#include "controller/reconcile/reconciler.h"
#include "controller/reconcile/work_queue.h"
#include "fmt/format.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

// A watch that is idle gets a bookmark every minute and ends after 10 minutes
// at most; a reconcile takes a few calls of 30 s at most.
constexpr absl::Duration kMaxSilence = absl::Minutes(20);
constexpr absl::Duration kMaxWait = absl::Minutes(5);
// Between two polls until all ranks have joined.
constexpr absl::Duration kJoiningInterval = absl::Seconds(1);

std::string OwnerKey(const Json& object) {
  const std::string owner = ControllerOf(object).first;
  return owner.empty() ? "" : SplitKey(KeyOf(object)).first + "/" + owner;
}

std::string ManagedSelector() { return std::string(label::kManaged) + "=true"; }

}  // namespace

class Controller::State {
 public:
  State(KubeApi& api, const Clock& clock, ProgressSource* progress,
        ControllerOptions options)
      : clock_(clock),
        progress_(progress),
        options_(std::move(options)),
        queue_(clock),
        polls_(clock),
        jobs_(api, clock,
              {Resource::kDistTrainingJobs, options_.name_space, "", nullptr},
              [this](const Json& job) { queue_.Add(KeyOf(job)); }),
        pods_(api, clock,
              {Resource::kPods, options_.name_space, ManagedSelector(),
               PrunedPod},
              [this](const Json& pod) { AddOwner(pod); }),
        services_(api, clock,
                  {Resource::kServices, options_.name_space, ManagedSelector(),
                   nullptr},
                  [this](const Json& service) { AddOwner(service); }),
        reconciler_(api, clock, {jobs_, pods_, services_}, reports_, progress,
                    {options_.pods, options_.node_lost_grace}) {}

  void Start();
  void Stop();
  absl::Status Healthy() const;
  bool Synced() const {
    return jobs_.Synced() && pods_.Synced() && services_.Synced();
  }

 private:
  void AddOwner(const Json& object) {
    const std::string key = OwnerKey(object);
    if (!key.empty()) queue_.Add(key);
  }
  void Work();
  void Finish(const std::string& key, const SyncResult& result);
  void Tell(const std::string& key, const SyncResult& result)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Poll();
  void PollOne(const std::string& key);

  const Clock& clock_;
  ProgressSource* const progress_;
  const ControllerOptions options_;
  WorkQueue queue_;
  WorkQueue polls_;
  ProgressStore reports_;
  Informer jobs_;
  Informer pods_;
  Informer services_;
  Reconciler reconciler_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;

  absl::Mutex mu_;
  // The last reason told, by key.
  std::map<std::string, std::string> told_ ABSL_GUARDED_BY(mu_);
};

void Controller::State::Start() {
  const auto stop = [this] { return stopping_.load(); };
  for (Informer* informer : {&jobs_, &pods_, &services_}) {
    threads_.emplace_back([informer, stop] { informer->Run(stop); });
  }
  for (int i = 0; i < std::max(options_.workers, 1); ++i) {
    threads_.emplace_back([this] { Work(); });
  }
  if (progress_ == nullptr) return;
  for (int i = 0; i < std::max(options_.pollers, 1); ++i) {
    threads_.emplace_back([this] { Poll(); });
  }
}

void Controller::State::Stop() {
  stopping_ = true;
  queue_.Stop();
  polls_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::Status Controller::State::Healthy() const {
  const absl::Time now = clock_.Now();
  for (const auto& [name, informer] :
       {std::pair("jobs", &jobs_), std::pair("pods", &pods_),
        std::pair("services", &services_)}) {
    const absl::Duration silence = now - informer->LastHeard();
    if (informer->Synced() && silence > kMaxSilence) {
      return absl::UnavailableError(
          fmt::format("the watch of {} heard nothing for {} s", name,
                      absl::ToInt64Seconds(silence)));
    }
  }
  const absl::Duration wait = queue_.LongestWait();
  if (Synced() && wait > kMaxWait) {
    return absl::UnavailableError(
        fmt::format("a job waits for its reconcile since {} s",
                    absl::ToInt64Seconds(wait)));
  }
  return absl::OkStatus();
}

void Controller::State::Work() {
  while (const auto key = queue_.Next()) {
    // Decisions on half a state would make pods that are there already.
    if (Synced()) {
      Finish(*key, reconciler_.Sync(*key));
    } else {
      queue_.AddAt(*key, clock_.Now() + absl::Milliseconds(20));
    }
    queue_.Done(*key);
  }
}

void Controller::State::Finish(const std::string& key,
                               const SyncResult& result) {
  Tell(key, result);
  if (result.gone) {
    queue_.Forget(key);
    polls_.Forget(key);
    return;
  }
  if (!result.status.ok()) {
    queue_.AddBackingOff(key);
    return;
  }
  queue_.ResetBackoff(key);
  queue_.AddAt(key, result.requeue_at);
  if (result.poll && progress_ != nullptr) polls_.AddAt(key, result.poll_at);
}

void Controller::State::Tell(const std::string& key, const SyncResult& result) {
  if (!options_.on_decision) return;
  {
    const absl::MutexLock lock(&mu_);
    if (result.gone) told_.erase(key);
    std::string& told = told_[key];
    // A conflict is everyday life: the next look has the newer object.
    if (result.gone || absl::IsAborted(result.status)) return;
    const std::string text = result.reason + result.status.ToString();
    if (told == text) return;
    told = text;
  }
  options_.on_decision(key, result.reason, result.status);
}

void Controller::State::Poll() {
  while (const auto key = polls_.Next()) {
    PollOne(*key);
    polls_.Done(*key);
  }
}

void Controller::State::PollOne(const std::string& key) {
  const auto [name_space, name] = SplitKey(key);
  const auto object = jobs_.Get(name_space, name);
  if (!object) return;
  const Job job = ParseAndValidate(*object).job;
  const JobStatus status = StatusFromJson(job.status);
  if (IsTerminal(status) || job.spec.suspend || job.spec.roles.empty()) return;
  auto progress =
      progress_->Get(job, status.attempt,
                     RendezvousAddress(job, status.attempt, options_.pods));
  const absl::Time now = clock_.Now();
  // Rank 0 may not be there yet, or not any more: the reconcile keeps asking as
  // long as its pod runs.
  const absl::Duration interval =
      progress.ok() && progress->state() == v1::Progress::STATE_RUNNING
          ? absl::Seconds(std::max(job.spec.reporting.interval_seconds, 1))
          : kJoiningInterval;
  polls_.AddAt(key, now + interval);
  if (!progress.ok()) return;
  reports_.Put(job.uid, {*std::move(progress), status.attempt, now});
  queue_.Add(key);
}

Controller::Controller(KubeApi& api, const Clock& clock,
                       ProgressSource* progress, ControllerOptions options)
    : state_(
          std::make_unique<State>(api, clock, progress, std::move(options))) {}

Controller::~Controller() { Stop(); }

void Controller::Start() { state_->Start(); }
void Controller::Stop() { state_->Stop(); }
absl::Status Controller::Healthy() const { return state_->Healthy(); }
bool Controller::Synced() const { return state_->Synced(); }

}  // namespace disttrain
