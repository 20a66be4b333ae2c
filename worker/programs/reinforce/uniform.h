// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

namespace disttrain::reinforce {

// Uniform in [0, 1), 53 bits. std::uniform_real_distribution may differ from
// one standard library to the next; this does not.
inline double Uniform(std::mt19937_64& generator) {
  return static_cast<double>(generator() >> 11) * 0x1.0p-53;
}

}  // namespace disttrain::reinforce
