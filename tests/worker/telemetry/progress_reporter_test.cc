// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/progress_reporter.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace disttrain {
namespace {

const absl::Time kStart = absl::FromUnixMillis(1767607200000);

TEST(ProgressReporter, KeepsTheLatestFigures) {
  ProgressReporter reporter(absl::Seconds(10), [] { return kStart; });
  reporter.Update([](v1::Report& report) { report.set_step(3); });
  v1::Report figures;
  figures.set_reward(21.5);
  reporter.Merge(figures);
  figures.Clear();
  figures.set_step(4);
  reporter.Merge(figures);
  const v1::Report report = reporter.Snapshot();
  EXPECT_EQ(report.step(), 4);
  EXPECT_EQ(report.reward(), 21.5);
  EXPECT_FALSE(report.has_loss());
  EXPECT_FALSE(report.has_samples_per_second());
  EXPECT_EQ(report.time_ms(), 1767607200000);
}

TEST(ProgressReporter, AveragesSamplesOverEachInterval) {
  absl::Time now = kStart;
  ProgressReporter reporter(absl::Seconds(10), [&now] { return now; });
  reporter.AddSamples(500);
  now += absl::Seconds(5);
  EXPECT_FALSE(reporter.Snapshot().has_samples_per_second());
  now += absl::Seconds(5);
  reporter.AddSamples(500);
  EXPECT_EQ(reporter.Snapshot().samples_per_second(), 100);
  // Until the next interval ends, the last one's figure stands.
  now += absl::Seconds(1);
  EXPECT_EQ(reporter.Snapshot().samples_per_second(), 100);
  now += absl::Seconds(19);
  EXPECT_EQ(reporter.Snapshot().samples_per_second(), 0);
  reporter.AddSamples(18);
  now += absl::Seconds(9);  // a timer that fired early
  EXPECT_EQ(reporter.Snapshot().samples_per_second(), 2);
}

TEST(ProgressReporter, LeavesTheRateToTheProgramThatCountsNoSamples) {
  absl::Time now = kStart;
  ProgressReporter reporter(absl::Seconds(1), [&now] { return now; });
  reporter.Update([](v1::Report& report) { report.set_samples_per_second(7); });
  now += absl::Seconds(2);
  EXPECT_EQ(reporter.Snapshot().samples_per_second(), 7);
}

TEST(ProgressReporter, MayBeUsedByManyThreads) {
  ProgressReporter reporter(absl::ZeroDuration());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&reporter] {
      for (int i = 0; i < 1000; ++i) {
        reporter.Update(
            [](v1::Report& report) { report.set_step(report.step() + 1); });
        reporter.AddSamples(1);
        if (i % 100 == 0) reporter.Snapshot();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reporter.Snapshot().step(), 4000);
}

}  // namespace
}  // namespace disttrain
