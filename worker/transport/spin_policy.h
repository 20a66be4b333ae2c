// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace disttrain::transport {

// Whether to look again for a moment before going to sleep.
//
// To wake a thread on another core costs 40 to 100 us on a virtual machine, so
// looking for about as long costs at most twice what the better choice would
// have (Karlin et al., "Competitive snoopy caching", 1988). On one core too it
// is cheaper, since whoever looks yields to the peer. It is given up while it
// does not pay, because nothing comes so soon or others need the core.
//
// Threads: not thread-safe.
class SpinPolicy {
 public:
  static constexpr absl::Duration kSpin = absl::Microseconds(50);

  // How long to look this time.
  absl::Duration Budget() {
    if (credit_ > 0) return kSpin;
    if (++skipped_ < kRetryEvery) return absl::ZeroDuration();
    skipped_ = 0;
    return kSpin;
  }

  // What became of a budget that was not zero.
  void Found() { credit_ = std::min(credit_ + kReward, kMaxCredit); }
  void Missed() { credit_ = std::max(credit_ - 1, 0); }

 private:
  static constexpr int kMaxCredit = 16;
  static constexpr int kReward = 2;
  static constexpr int kRetryEvery = 32;

  int credit_ = kMaxCredit;
  int skipped_ = 0;
};

}  // namespace disttrain::transport
