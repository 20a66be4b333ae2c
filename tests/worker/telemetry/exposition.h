// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace disttrain {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

struct Exposition {
  std::map<std::string, std::string> types;  // family -> counter, gauge ...
  std::map<std::string, std::string> help;
  std::vector<Sample> samples;

  // The value of the only sample with this name and (at least) these labels;
  // NaN and a test failure if there is none or more than one.
  double Value(const std::string& name, const Labels& labels = {}) const;
  size_t Count(const std::string& name) const;
};

// A strict parser of the text format 0.0.4, written from its description
// (https://prometheus.io/docs/instrumenting/exposition_formats/), independent
// of what writes it. Throws std::runtime_error, which names the line.
Exposition ParseExposition(const std::string& text);

}  // namespace disttrain
