// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/fakes/fake_clock.h"

namespace disttrain {

// What the clock shows in the tests of decisions.
const absl::Time kNow = FakeClock::Start();

}  // namespace disttrain
