// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace disttrain {

// The process_* metrics that every Prometheus client library has, read from
// /proc at each call. What cannot be read is left out.
//
// Threads: thread-safe.
class ProcessCollector : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace disttrain
