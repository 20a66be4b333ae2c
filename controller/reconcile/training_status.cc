// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "controller/reconcile/plan_steps.h"
#include "controller/reconcile/success_policy.h"
#include "proto/contract/termination_message.h"

namespace disttrain {
namespace {

// Weight of the newest interval in the smoothed speed.
constexpr double kNewest = 0.3;

void MergeStep(int64_t step, absl::Time time, Training& training) {
  if (training.step && *training.step == step && training.last_step) return;
  if (training.step && training.last_step && training.last_report &&
      step > *training.step && time > *training.last_report) {
    const double seconds = absl::ToDoubleSeconds(time - *training.last_report);
    const double speed = static_cast<double>(step - *training.step) / seconds;
    const double before = training.steps_per_second.value_or(speed);
    training.steps_per_second = before + kNewest * (speed - before);
  }
  training.step = step;
  training.last_step = time;
}

}  // namespace

void MergeReport(const JobSpec& spec, const ProgressReport& report,
                 JobStatus& status) {
  Training& training = status.training;
  if (report.attempt != status.attempt || !report.progress.has_training() ||
      (training.last_report && report.time <= *training.last_report)) {
    return;
  }
  const v1::Report& latest = report.progress.training();
  if (latest.has_step()) MergeStep(latest.step(), report.time, training);
  if (latest.has_total_steps()) training.total_steps = latest.total_steps();
  if (latest.has_epoch()) training.epoch = latest.epoch();
  if (latest.has_loss()) training.loss = latest.loss();
  if (latest.has_episode_reward()) {
    training.episode_reward = latest.episode_reward();
  }
  if (latest.has_samples_per_second()) {
    training.samples_per_second = latest.samples_per_second();
  }
  if (latest.has_reward()) {
    training.reward = latest.reward();
    if (std::isfinite(latest.reward())) {
      training.best_reward = std::max(
          training.best_reward.value_or(latest.reward()), latest.reward());
    }
  }
  if (latest.has_checkpoint_step() &&
      training.checkpoint_step != latest.checkpoint_step()) {
    training.checkpoint_step = latest.checkpoint_step();
    training.checkpoint_time = report.time;
  }
  training.last_report = report.time;
  if (spec.success_policy.metric) {
    training.target_reports =
        MeetsTarget(*spec.success_policy.metric, training)
            ? std::min(training.target_reports + 1, 1'000'000)
            : 0;
  }
}

void MergeFinalFigures(PlanState& state) {
  Training& training = state.status().training;
  for (const auto& [at, pod] : state.current) {
    if (!Succeeded(*pod)) continue;
    const auto said = ParseTerminationMessage(pod->termination_message);
    if (!said || (!said->reward && !said->loss)) continue;  // not the driver
    training.step = said->step;
    if (said->loss) training.loss = said->loss;
    if (said->episode_reward) training.episode_reward = said->episode_reward;
    if (!said->reward) continue;
    training.reward = said->reward;
    training.best_reward =
        std::max(training.best_reward.value_or(*said->reward), *said->reward);
  }
}

}  // namespace disttrain
