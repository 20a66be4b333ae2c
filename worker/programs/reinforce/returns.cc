// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/returns.h"

#include <cmath>
#include <limits>

namespace disttrain::reinforce {

std::vector<double> DiscountedReturns(const std::vector<double>& rewards,
                                      double gamma) {
  std::vector<double> returns(rewards.size());
  double later = 0;
  for (size_t i = rewards.size(); i-- > 0;) {
    later = rewards[i] + gamma * later;
    returns[i] = later;
  }
  return returns;
}

void Normalize(std::vector<double>& returns) {
  if (returns.empty()) return;
  const auto count = static_cast<double>(returns.size());
  double mean = 0;
  for (const double value : returns) mean += value / count;
  double squares = 0;
  for (const double value : returns) squares += (value - mean) * (value - mean);
  const double deviation =
      returns.size() == 1 ? 0 : std::sqrt(squares / (count - 1));
  constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
  for (double& value : returns) value = (value - mean) / (deviation + kEpsilon);
}

}  // namespace disttrain::reinforce
