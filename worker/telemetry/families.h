// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace disttrain {

// `text` as a label's value: UTF-8, at most 100 bytes.
std::string LabelValue(std::string_view text);

// Where the metrics of one process are registered, and the labels that all of
// them carry (job_name, role, rank).
struct Families {
  prometheus::Registry& registry;
  prometheus::Labels labels;

  prometheus::Family<prometheus::Counter>& Counters(
      const char* name, const std::string& help) const;
  prometheus::Family<prometheus::Gauge>& Gauges(const char* name,
                                                const std::string& help) const;
  prometheus::Family<prometheus::Histogram>& Histograms(
      const char* name, const std::string& help) const;

  // The only child of a new family, at 0.
  prometheus::Counter& Counter(const char* name, const std::string& help) const;
  prometheus::Gauge& Gauge(const char* name, const std::string& help) const;
};

// A gauge that is not shown before its first value.
//
// Threads: thread-safe.
class LateGauge {
 public:
  LateGauge(const Families& families, const char* name,
            const std::string& help);

  void Set(double value);

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  std::once_flag once_;
  prometheus::Gauge* gauge_ = nullptr;  // set once
};

}  // namespace disttrain
