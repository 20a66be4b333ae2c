// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/job_world.h"

#include <utility>

#include "controller/kube/informer.h"
#include "controller/reconcile/prune.h"
#include "gtest/gtest.h"
#include "proto/contract/labels.h"

namespace disttrain {

absl::StatusOr<v1::Progress> FakeProgress::Get(const Job&, int,
                                               const std::string&) {
  return absl::UnavailableError("nobody polls in these tests");
}

absl::Status FakeProgress::Stop(const Job&, int, const std::string&, bool,
                                const std::string& reason) {
  ++stops;
  stop_reason = reason;
  return absl::OkStatus();
}

class JobWorld::CountingApi : public KubeApi {
 public:
  CountingApi(KubeApi& api, std::atomic<int>& creates)
      : api_(api), creates_(creates) {}

  absl::StatusOr<Json> Get(Resource resource, const std::string& name_space,
                           const std::string& name) override {
    return api_.Get(resource, name_space, name);
  }
  absl::StatusOr<ObjectList> List(Resource resource,
                                  const std::string& name_space,
                                  const std::string& selector) override {
    return api_.List(resource, name_space, selector);
  }
  absl::Status Watch(Resource resource, const std::string& name_space,
                     const std::string& selector, const std::string& version,
                     const std::function<void(const WatchEvent&)>& on_event,
                     const std::function<bool()>& stop) override {
    return api_.Watch(resource, name_space, selector, version, on_event, stop);
  }
  absl::StatusOr<Json> Create(Resource resource, const Json& object,
                              bool dry_run) override {
    if (resource == Resource::kPods && !dry_run) ++creates_;
    return api_.Create(resource, object, dry_run);
  }
  absl::StatusOr<Json> Apply(Resource resource, const Json& object) override {
    return api_.Apply(resource, object);
  }
  absl::StatusOr<Json> UpdateStatus(Resource resource,
                                    const Json& object) override {
    return api_.UpdateStatus(resource, object);
  }
  absl::Status Delete(Resource resource, const std::string& name_space,
                      const std::string& name,
                      const DeleteOptions& options) override {
    return api_.Delete(resource, name_space, name, options);
  }

 private:
  KubeApi& api_;
  std::atomic<int>& creates_;
};

struct JobWorld::Controller {
  Controller(KubeApi& api, const Clock& clock, ProgressSource* progress)
      : queue(clock),
        jobs(api, clock, {Resource::kDistTrainingJobs, "", "", nullptr},
             [this](const Json& job) { queue.Add(KeyOf(job)); }),
        pods(api, clock,
             {Resource::kPods, "", std::string(label::kManaged) + "=true",
              PrunedPod},
             [this](const Json& pod) {
               queue.Add(SplitKey(KeyOf(pod)).first + "/" +
                         ControllerOf(pod).first);
             }),
        services(api, clock, {Resource::kServices, "", "", nullptr},
                 [](const Json&) {}),
        reconciler(api, clock, {jobs, pods, services}, reports, progress, {}) {}

  bool RunReady() {
    bool any = false;
    while (const auto key = queue.TryNext()) {
      any = true;
      const SyncResult result = reconciler.Sync(*key);
      if (!result.gone) {
        if (result.status.ok()) {
          queue.ResetBackoff(*key);
          queue.AddAt(*key, result.requeue_at);
        } else {
          queue.AddBackingOff(*key);
        }
      }
      queue.Done(*key);
    }
    return any;
  }

  WorkQueue queue;
  Informer jobs;
  Informer pods;
  Informer services;
  ProgressStore reports;
  Reconciler reconciler;
};

JobWorld::JobWorld(bool with_progress)
    : api(clock), nodes(api, clock), with_progress_(with_progress) {
  counting_ = std::make_unique<CountingApi>(api, creates);
  RestartController();
}

JobWorld::~JobWorld() = default;

void JobWorld::RestartController() {
  controller_ = std::make_unique<Controller>(
      *counting_, clock, with_progress_ ? &progress : nullptr);
}

void JobWorld::Apply(const Json& spec) {
  const auto created = api.Create(Resource::kDistTrainingJobs,
                                  {{"apiVersion", kApiVersion},
                                   {"kind", kKind},
                                   {"metadata", {{"name", "cartpole"}}},
                                   {"spec", spec}});
  ASSERT_TRUE(created.ok()) << created.status();
}

void JobWorld::Patch(const Json& patch) {
  const auto patched =
      api.Patch(Resource::kDistTrainingJobs, "default", "cartpole", patch);
  ASSERT_TRUE(patched.ok()) << patched.status();
}

void JobWorld::Report(const v1::Progress& progress_now) {
  const Json job = JobObject();
  controller_->reports.Put(job["metadata"]["uid"],
                           {progress_now, Status().attempt, clock.Now()});
  controller_->queue.Add("default/cartpole");
}

void JobWorld::Settle() {
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(controller_->jobs.Relist().ok());
    ASSERT_TRUE(controller_->pods.Relist().ok());
    ASSERT_TRUE(controller_->services.Relist().ok());
    if (!controller_->RunReady()) return;
  }
  FAIL() << "the reconcile never comes to rest: " << JobObject().dump(2);
}

void JobWorld::Advance(absl::Duration by) {
  const absl::Time end = clock.Now() + by;
  Settle();
  while (controller_->queue.NextDue() <= end) {
    clock.Set(controller_->queue.NextDue());
    Settle();
    if (testing::Test::HasFatalFailure()) return;
  }
  clock.Set(end);
  Settle();
}

void JobWorld::RunAll() {
  Settle();
  nodes.RunAll();
  Settle();
}

bool JobWorld::JobExists() {
  return api.Get(Resource::kDistTrainingJobs, "default", "cartpole").ok();
}

Json JobWorld::JobObject() {
  const auto job = api.Get(Resource::kDistTrainingJobs, "default", "cartpole");
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *job : Json::object();
}

JobStatus JobWorld::Status() {
  return StatusFromJson(JobObject().value("status", Json::object()));
}

std::string JobWorld::ConditionOf(const std::string& type) {
  const JobStatus status = Status();
  const Condition* found = FindCondition(status, type);
  return found == nullptr ? "" : found->status + "/" + found->reason;
}

}  // namespace disttrain
