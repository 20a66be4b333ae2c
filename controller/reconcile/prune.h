// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller/api/job.h"

namespace disttrain {

// The part of a pod that PodViewFromJson and the cache read; a few hundred
// bytes of the 4 to 20 kB that a pod has.
Json PrunedPod(const Json& pod);

}  // namespace disttrain
