// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/program.h"

#include <algorithm>
#include <set>

#include "absl/time/clock.h"
#include "disttrain/v1/progress.pb.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace disttrain {
namespace {

v1::Report FiguresOf(const ProgramReport& report) {
  v1::Report figures;
  if (report.step) figures.set_step(*report.step);
  if (report.total_steps) figures.set_total_steps(*report.total_steps);
  if (report.epoch) figures.set_epoch(*report.epoch);
  if (report.loss) figures.set_loss(*report.loss);
  if (report.reward) figures.set_reward(*report.reward);
  if (report.episode_reward) figures.set_episode_reward(*report.episode_reward);
  return figures;
}

}  // namespace

std::vector<rpc::Peer> Program::Role(std::string_view name) const {
  std::vector<rpc::Peer> members;
  std::set<std::string> roles;
  for (const rpc::Peer& peer : context_.peers) {
    roles.insert(peer.role);
    if (peer.role == name) members.push_back(peer);
  }
  if (members.empty()) {
    throw ConfigError(fmt::format("the job has no role {}; its roles are {}",
                                  name, fmt::join(roles, ", ")));
  }
  return members;
}

const rpc::Peer& Program::self() const {
  return context_.peers.at(static_cast<size_t>(context_.identity.rank));
}

void Program::Report(const ProgramReport& report) {
  context_.progress.Merge(FiguresOf(report));
  const int64_t samples = report.environment_steps + report.samples;
  if (samples > 0) context_.progress.AddSamples(samples);

  Metrics& metrics = context_.metrics;
  if (report.step) {
    const absl::Time now = absl::Now();
    absl::MutexLock lock(&mu_);
    metrics.StepDone(now - last_step_);
    last_step_ = now;
  }
  if (samples > 0) metrics.AddSamples(samples);
  if (report.loss) metrics.SetLoss(*report.loss);
  if (report.gradient_norm) metrics.SetGradientNorm(*report.gradient_norm);
  if (report.learning_rate) metrics.SetLearningRate(*report.learning_rate);
  if (report.reward) metrics.SetRewardMean(*report.reward);
  if (report.episode_reward) {
    metrics.EpisodeDone(*report.episode_reward, report.environment_steps);
  }
}

}  // namespace disttrain
