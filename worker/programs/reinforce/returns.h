// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace disttrain::reinforce {

// One observer's rewards of one episode -> its discounted returns,
// R[t] = r[t] + gamma * R[t + 1], starting afresh for every observer.
std::vector<double> DiscountedReturns(const std::vector<double>& rewards,
                                      double gamma);

// (x - mean) / (unbiased standard deviation + float32's epsilon), over the
// returns of all observers together. A single return has no deviation: it
// becomes 0.
void Normalize(std::vector<double>& returns);

}  // namespace disttrain::reinforce
