// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/metrics.h"

#include <unistd.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/telemetry/exposition.h"

namespace disttrain {
namespace {

const MetricsOptions kAgent = {.job_name = "ml/cartpole",
                               .role = "agent",
                               .rank = 0,
                               .world_size = 3,
                               .torch_version = "2.11.0"};

TEST(Exposition, IsStrict) {
  EXPECT_NO_THROW(
      ParseExposition("# TYPE a counter\na{b=\"\\\\\\\"\\n\"} 1\n"));
  for (const char* wrong :
       {"", "# TYPE a counter\na 1", "a 1\n", "# TYPE a counter\na{b=\"c} 1\n",
        "# TYPE a counter\na 1\na 2\n", "# TYPE a counter\na x\n",
        "# TYPE a counter\na{b=\"1\",b=\"2\"} 1\n", "# TYPE a what\n",
        "# HELP a b\nc\n", "# TYPE a counter\na{b=\"\xFF\"} 1\n"}) {
    EXPECT_ANY_THROW(ParseExposition(wrong)) << wrong;
  }
}

TEST(Metrics, CountersStartAtZeroWithTheCommonLabels) {
  const Exposition scrape = ParseExposition(Metrics(kAgent).Serialize());
  const Labels common = {
      {"job_name", "cartpole"}, {"role", "agent"}, {"rank", "0"}};
  for (const char* name :
       {"disttrain_train_steps_total", "disttrain_train_samples_total",
        "disttrain_train_epochs_total", "disttrain_rl_episodes_total",
        "disttrain_rl_env_steps_total", "disttrain_rpc_sent_bytes_total",
        "disttrain_rpc_received_bytes_total"}) {
    EXPECT_EQ(scrape.Value(name, common), 0) << name;
    EXPECT_EQ(scrape.types.at(name), "counter");
  }
  EXPECT_EQ(scrape.Value("disttrain_train_nonfinite_total", {{"kind", "loss"}}),
            0);
  EXPECT_EQ(scrape.Value("disttrain_train_nonfinite_total", {{"kind", "grad"}}),
            0);
  for (const char* state : {"owned", "used", "pending"}) {
    EXPECT_EQ(scrape.Value("disttrain_rpc_references", {{"state", state}}), 0);
  }
  EXPECT_EQ(scrape.Value("disttrain_worker_info", {{"world_size", "3"},
                                                   {"device", "cpu"},
                                                   {"torch_version", "2.11.0"},
                                                   {"nccl_version", "none"}}),
            1);
}

TEST(Metrics, TrainingGaugesAppearWithTheirFirstValue) {
  Metrics metrics(kAgent);
  EXPECT_EQ(ParseExposition(metrics.Serialize()).Count("disttrain_train_loss"),
            0u);
  metrics.SetLoss(0.75);
  metrics.SetGradientNorm(1.5);
  metrics.SetLearningRate(0.01);
  metrics.SetRewardMean(21.5);
  metrics.HeartbeatDone(absl::FromUnixSeconds(1767607200));
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_EQ(scrape.Value("disttrain_train_loss"), 0.75);
  EXPECT_EQ(scrape.Value("disttrain_train_gradient_norm"), 1.5);
  EXPECT_EQ(scrape.Value("disttrain_train_learning_rate"), 0.01);
  EXPECT_EQ(scrape.Value("disttrain_rl_episode_reward_mean"), 21.5);
  EXPECT_EQ(scrape.Value("disttrain_worker_heartbeat_timestamp_seconds"),
            1767607200);
}

TEST(Metrics, CountsStepsAndEpisodes) {
  Metrics metrics(kAgent);
  metrics.StepDone(absl::Milliseconds(20));
  metrics.StepDone(absl::Seconds(3));
  metrics.AddSamples(64);
  metrics.EpochDone();
  metrics.EpisodeDone(/*reward=*/20, /*length=*/21);
  metrics.EpisodeDone(/*reward=*/475, /*length=*/475);
  metrics.EpisodeDone(std::nan(""), /*length=*/1);
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_EQ(scrape.Value("disttrain_train_steps_total"), 2);
  EXPECT_EQ(scrape.Value("disttrain_train_samples_total"), 64);
  EXPECT_EQ(scrape.Value("disttrain_train_epochs_total"), 1);
  const std::string step = "disttrain_train_step_duration_seconds";
  EXPECT_EQ(scrape.types.at(step), "histogram");
  EXPECT_EQ(scrape.Value(step + "_count"), 2);
  EXPECT_DOUBLE_EQ(scrape.Value(step + "_sum"), 3.02);
  EXPECT_EQ(scrape.Value(step + "_bucket", {{"le", "0.05"}}), 1);
  EXPECT_EQ(scrape.Value(step + "_bucket", {{"le", "+Inf"}}), 2);
  EXPECT_EQ(scrape.Value("disttrain_rl_episodes_total"), 3);
  EXPECT_EQ(scrape.Value("disttrain_rl_env_steps_total"), 497);
  EXPECT_EQ(scrape.Value("disttrain_rl_episode_length"), 1);
  // A bucket holds its upper bound; a NaN does not spoil the sum.
  EXPECT_EQ(scrape.Value("disttrain_rl_episode_reward_bucket", {{"le", "475"}}),
            2);
  EXPECT_EQ(scrape.Value("disttrain_rl_episode_reward_sum"), 495);
}

TEST(Metrics, CountsValuesThatAreNotFinite) {
  Metrics metrics(kAgent);
  metrics.SetLoss(std::nan(""));
  metrics.SetLoss(1);
  metrics.SetLoss(std::numeric_limits<double>::infinity());
  metrics.SetGradientNorm(-std::numeric_limits<double>::infinity());
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_EQ(scrape.Value("disttrain_train_nonfinite_total", {{"kind", "loss"}}),
            2);
  EXPECT_EQ(scrape.Value("disttrain_train_nonfinite_total", {{"kind", "grad"}}),
            1);
  EXPECT_TRUE(std::isinf(scrape.Value("disttrain_train_loss")));
}

TEST(Metrics, CountsCallsByMethodRoleAndOutcome) {
  Metrics metrics(kAgent);
  metrics.RpcCallDone("Observer.RunEpisode", "observer", "ok",
                      absl::Milliseconds(5));
  metrics.RpcCallDone("Observer.RunEpisode", "observer", "peer_lost",
                      absl::Seconds(60));
  metrics.RpcCallDone("Observer.RunEpisode", "observer", "unheard-of",
                      absl::ZeroDuration());
  const Exposition scrape = ParseExposition(metrics.Serialize());
  const auto calls = [&scrape](const std::string& code) {
    return scrape.Value("disttrain_rpc_calls_total",
                        {{"method", "Observer.RunEpisode"},
                         {"peer_role", "observer"},
                         {"code", code}});
  };
  EXPECT_EQ(calls("ok"), 1);
  EXPECT_EQ(calls("peer_lost"), 1);
  EXPECT_EQ(calls("error"), 1);
  EXPECT_EQ(calls("deadline"), 0);
  EXPECT_EQ(calls("cancelled"), 0);
  EXPECT_EQ(scrape.Value("disttrain_rpc_call_duration_seconds_count",
                         {{"method", "Observer.RunEpisode"}}),
            3);
}

TEST(Metrics, ShowsTheRpcLayersFigures) {
  Metrics metrics(kAgent);
  metrics.SetRpcFigures({.calls_in_flight = 1,
                         .server_calls_active = 2,
                         .sent_bytes = 100,
                         .received_bytes = 200,
                         .references_owned = 3,
                         .references_used = 4,
                         .references_pending = 5,
                         .pool_threads = 6,
                         .pool_idle_threads = 7});
  metrics.SetRpcFigures({.sent_bytes = 150, .received_bytes = 200});
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_EQ(scrape.Value("disttrain_rpc_sent_bytes_total"), 150);
  EXPECT_EQ(scrape.Value("disttrain_rpc_received_bytes_total"), 200);
  EXPECT_EQ(scrape.Value("disttrain_rpc_calls_in_flight"), 0);
  EXPECT_EQ(scrape.Value("disttrain_rpc_pool_threads"), 0);
}

TEST(Metrics, HostileLabelsSurviveTheScrape) {
  const std::string hostile = "a\"b\\c\nd{e=\"f\"} 1\n# HELP x\r€";
  Metrics metrics({.job_name = hostile, .role = hostile, .device = "\xFF\xC3"});
  metrics.RpcCallDone(hostile, hostile, "ok", absl::ZeroDuration());
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_EQ(scrape.Value("disttrain_train_steps_total",
                         {{"job_name", hostile}, {"role", hostile}}),
            0);
  EXPECT_EQ(scrape.Value(
                "disttrain_rpc_calls_total",
                {{"method", hostile}, {"peer_role", hostile}, {"code", "ok"}}),
            1);
  EXPECT_EQ(scrape.Value("disttrain_worker_info",
                         {{"device", "\xEF\xBF\xBD\xEF\xBF\xBD"}}),
            1);
}

TEST(Metrics, StaysBelowTwoHundredSeriesWhateverIsCalled) {
  Metrics metrics(kAgent);
  metrics.SetLoss(1);
  metrics.SetGradientNorm(1);
  metrics.SetLearningRate(1);
  metrics.SetRewardMean(1);
  metrics.EpisodeDone(1, 1);
  metrics.HeartbeatDone(absl::Now());
  for (int i = 0; i < 1000; ++i) {
    metrics.RpcCallDone(fmt::format("Class.Method{}", i), "observer", "ok",
                        absl::ZeroDuration());
  }
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_LE(scrape.samples.size(), 200u);
  EXPECT_EQ(scrape.Value("disttrain_rpc_calls_total",
                         {{"method", "Class.Method7"}, {"code", "ok"}}),
            1);
  EXPECT_EQ(scrape.Value("disttrain_rpc_calls_total",
                         {{"method", "other"}, {"code", "ok"}}),
            992);
}

TEST(Metrics, DescribesTheProcess) {
  const Exposition scrape = ParseExposition(Metrics(kAgent).Serialize());
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_GT(scrape.Value("process_cpu_seconds_total"), -1);
  EXPECT_GT(scrape.Value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(scrape.Value("process_virtual_memory_bytes"),
            scrape.Value("process_resident_memory_bytes"));
  EXPECT_GE(scrape.Value("process_open_fds"), 1);
  EXPECT_EQ(scrape.Value("process_max_fds"),
            static_cast<double>(::sysconf(_SC_OPEN_MAX)));
  EXPECT_GE(scrape.Value("process_threads"), 1);
  EXPECT_NEAR(scrape.Value("process_start_time_seconds"), now, 3600);
  for (const auto& [name, type] : scrape.types) {
    EXPECT_FALSE(scrape.help.at(name).empty()) << name;
  }
}

TEST(Metrics, MayBeUsedByManyThreads) {
  Metrics metrics(kAgent);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics, t] {
      for (int i = 0; i < 100; ++i) {
        metrics.StepDone(absl::Milliseconds(i));
        metrics.SetLoss(i);
        metrics.RpcCallDone(fmt::format("m{}", i % 10), "r", "ok",
                            absl::Milliseconds(t));
        if (i % 25 == 0) ParseExposition(metrics.Serialize());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Exposition scrape = ParseExposition(metrics.Serialize());
  EXPECT_EQ(scrape.Value("disttrain_train_steps_total"), 400);
}

}  // namespace
}  // namespace disttrain
