// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/reports.h"

#include <algorithm>

namespace disttrain {
namespace {

// Takes what only the driver knows from `from`, unless a lower rank said it.
void TakeDriversFigures(const v1::Report& from, v1::Report* merged) {
  if (from.has_reward() && !merged->has_reward()) {
    merged->set_reward(from.reward());
  }
  if (from.has_episode_reward() && !merged->has_episode_reward()) {
    merged->set_episode_reward(from.episode_reward());
  }
  if (from.has_total_steps() && !merged->has_total_steps()) {
    merged->set_total_steps(from.total_steps());
  }
}

// The smaller of `value` and what was merged so far.
int64_t Least(bool has, int64_t so_far, int64_t value) {
  return has ? std::min(so_far, value) : value;
}

}  // namespace

v1::Report MergeReports(const std::vector<RankReport>& reports,
                        const std::string& driver_role) {
  v1::Report merged;
  double losses = 0;
  int with_loss = 0;
  bool driver_seen = false;
  for (const auto& [rank, role, report] : reports) {
    if (report.has_step()) {
      merged.set_step(Least(merged.has_step(), merged.step(), report.step()));
    }
    if (report.has_epoch()) {
      merged.set_epoch(
          Least(merged.has_epoch(), merged.epoch(), report.epoch()));
    }
    if (report.has_checkpoint_step()) {
      merged.set_checkpoint_step(Least(merged.has_checkpoint_step(),
                                       merged.checkpoint_step(),
                                       report.checkpoint_step()));
    }
    if (report.has_loss()) {
      losses += report.loss();
      ++with_loss;
    }
    if (report.has_samples_per_second()) {
      merged.set_samples_per_second(merged.samples_per_second() +
                                    report.samples_per_second());
    }
    if (driver_role.empty() || (role == driver_role && !driver_seen)) {
      TakeDriversFigures(report, &merged);
      driver_seen = true;
    }
    merged.set_time_ms(std::max(merged.time_ms(), report.time_ms()));
  }
  if (with_loss > 0) merged.set_loss(losses / with_loss);
  return merged;
}

}  // namespace disttrain
