// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/families.h"

#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr size_t kMaxLabelBytes = 100;

}  // namespace

std::string LabelValue(std::string_view text) {
  return ValidUtf8(Shortened(text, kMaxLabelBytes));
}

prometheus::Family<prometheus::Counter>& Families::Counters(
    const char* name, const std::string& help) const {
  return prometheus::BuildCounter()
      .Name(name)
      .Help(help)
      .Labels(labels)
      .Register(registry);
}

prometheus::Family<prometheus::Gauge>& Families::Gauges(
    const char* name, const std::string& help) const {
  return prometheus::BuildGauge().Name(name).Help(help).Labels(labels).Register(
      registry);
}

prometheus::Family<prometheus::Histogram>& Families::Histograms(
    const char* name, const std::string& help) const {
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Labels(labels)
      .Register(registry);
}

prometheus::Counter& Families::Counter(const char* name,
                                       const std::string& help) const {
  return Counters(name, help).Add({});
}

prometheus::Gauge& Families::Gauge(const char* name,
                                   const std::string& help) const {
  return Gauges(name, help).Add({});
}

LateGauge::LateGauge(const Families& families, const char* name,
                     const std::string& help)
    : family_(families.Gauges(name, help)) {}

void LateGauge::Set(double value) {
  // Registered with its value: a scrape never sees a 0 that nobody reported.
  std::call_once(once_, [&] { gauge_ = &family_.Add({}, value); });
  gauge_->Set(value);
}

}  // namespace disttrain
