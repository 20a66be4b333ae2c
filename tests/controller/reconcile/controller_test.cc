// SPDX-License-Identifier: Apache-2.0
// The controller with its own threads, and a poller that talks gRPC.
#include "controller/reconcile/controller.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "controller/local/memory_api.h"
#include "controller/reconcile/grpc_progress_source.h"
#include "controller/reconcile/job_status.h"
#include "disttrain/v1/rendezvous.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/contract/labels.h"
#include "tests/fakes/node_twin.h"

namespace disttrain {
namespace {

// Waits for a condition; only a broken program takes the whole time.
bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (absl::Now() < deadline) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

class Rank0 : public v1::Rendezvous::Service {
 public:
  grpc::Status GetProgress(grpc::ServerContext*,
                           const v1::GetProgressRequest* request,
                           v1::Progress* progress) override {
    if (request->job_uid().empty()) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "another job"};
    }
    progress->set_state(v1::Progress::STATE_RUNNING);
    progress->set_joined(2);
    progress->mutable_training()->set_step(7);
    return grpc::Status::OK;
  }
  grpc::Status Stop(grpc::ServerContext*, const v1::StopRequest* request,
                    v1::StopResponse*) override {
    const absl::MutexLock lock(&mu_);
    stopped_ = request->reason();
    return grpc::Status::OK;
  }
  std::string Stopped() const {
    const absl::MutexLock lock(&mu_);
    return stopped_;
  }

 private:
  mutable absl::Mutex mu_;
  std::string stopped_ ABSL_GUARDED_BY(mu_);
};

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() : api_(clock_), nodes_(api_, clock_) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&rank0_);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    server_ = builder.BuildAndStart();
  }
  ~ControllerTest() override { server_->Shutdown(); }

  void Apply(const std::string& program) {
    Json spec = Json::parse(R"({"reporting": {"intervalSeconds": 1}, "roles": [
        {"name": "agent", "replicas": 2, "template": {"spec": {"containers":
            [{"name": "main", "image": "busybox"}]}}}]})");
    if (!program.empty()) spec["program"] = program;
    const auto created = api_.Create(Resource::kDistTrainingJobs,
                                     {{"apiVersion", kApiVersion},
                                      {"kind", kKind},
                                      {"metadata", {{"name", "cartpole"}}},
                                      {"spec", spec}});
    ASSERT_TRUE(created.ok()) << created.status();
  }

  JobStatus Status() {
    const auto job =
        api_.Get(Resource::kDistTrainingJobs, "default", "cartpole");
    return job.ok() ? StatusFromJson(job->value("status", Json::object()))
                    : JobStatus{};
  }

  std::string Address() const { return "127.0.0.1:" + std::to_string(port_); }

  const SystemClock clock_;
  MemoryApi api_;
  NodeTwin nodes_;
  Rank0 rank0_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ControllerTest, TakesAJobFromItsWishToItsEnd) {
  Controller controller(api_, clock_, nullptr, {});
  controller.Start();
  Apply("");
  ASSERT_TRUE(Eventually([&] { return nodes_.Pods().size() == 2; }));
  EXPECT_TRUE(controller.Synced());
  nodes_.RunAll();
  ASSERT_TRUE(Eventually([&] { return Status().phase == "Running"; }));
  nodes_.End("cartpole-agent-1", {137, 9});
  ASSERT_TRUE(Eventually([&] {
    return nodes_.Has("cartpole-agent-0-r1") &&
           nodes_.Has("cartpole-agent-1-r1");
  }));
  nodes_.FinishDeletions();
  nodes_.RunAll();
  ASSERT_TRUE(Eventually([&] { return Status().phase == "Running"; }));
  nodes_.End("cartpole-agent-0-r1", {0});
  nodes_.End("cartpole-agent-1-r1", {0});
  EXPECT_TRUE(Eventually([&] { return Status().phase == "Complete"; }));
  EXPECT_TRUE(controller.Healthy().ok()) << controller.Healthy();
  controller.Stop();
}

TEST_F(ControllerTest, PollsRank0AndShowsItsTraining) {
  GrpcProgressSource progress;
  ControllerOptions options;
  options.pods.rendezvous_address = Address();
  Controller controller(api_, clock_, &progress, options);
  controller.Start();
  Apply("reinforce");
  ASSERT_TRUE(Eventually([&] { return nodes_.Pods().size() == 2; }));
  nodes_.RunAll();
  EXPECT_TRUE(Eventually([&] { return Status().training.step == 7; }));
  EXPECT_EQ(Status().phase, "Running");
  const auto patched = api_.Patch(Resource::kDistTrainingJobs, "default",
                                  "cartpole", {{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(patched.ok());
  EXPECT_TRUE(Eventually([&] { return Status().phase == "Suspended"; }));
  controller.Stop();
  EXPECT_EQ(rank0_.Stopped(), "the job was suspended");
}

TEST_F(ControllerTest, FollowsTheServerAfterItHasForgottenItsHistory) {
  Controller controller(api_, clock_, nullptr, {});
  controller.Start();
  Apply("");
  ASSERT_TRUE(Eventually([&] { return nodes_.Pods().size() == 2; }));
  nodes_.RunAll();
  ASSERT_TRUE(Eventually([&] { return Status().phase == "Running"; }));
  api_.CloseWatches();
  nodes_.Vanish("cartpole-agent-1");
  api_.Compact();
  EXPECT_TRUE(Eventually([&] { return nodes_.Has("cartpole-agent-1-r1"); }))
      << "the list that follows tells of the pod that is gone";
  controller.Stop();
}

TEST_F(ControllerTest, StopsAtAnyTime) {
  for (int i = 0; i < 5; ++i) {
    Controller controller(api_, clock_, nullptr, {});
    controller.Start();
  }
}

TEST_F(ControllerTest, AProgressSourceNamesTheAddressInItsErrors) {
  GrpcProgressSource source;
  const absl::Status refused = source.Get(Job{}, 0, Address()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), Address() + ": another job");
  EXPECT_TRUE(absl::IsUnavailable(
      source.Get(Job{}, 0, "unix:/nonexistent/r.sock").status()));
}

}  // namespace
}  // namespace disttrain
