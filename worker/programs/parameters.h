// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

// A program's parameters describe themselves:
//
//   struct MyParameters {
//     double gamma = 0.99;
//     int64_t seed = 543;
//
//     void Visit(disttrain::ParameterList& p) {
//       p("gamma", gamma, "discount of later rewards", Range::Closed(0, 1));
//       p("seed", seed, "seed of all random numbers");
//     }
//   };
//
// From that one function come the parser of spec.parameters, its checks, and
// what `disttrain-worker --list-programs` says.
namespace disttrain {

// spec.parameters as JSON text is at most this long.
inline constexpr size_t kMaxParametersBytes = 64 << 10;

// The values that a number may take.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_included = true;
  bool max_included = true;

  static Range AtLeast(double min) { return {.min = min}; }
  static Range Above(double min) { return {.min = min, .min_included = false}; }
  static Range Closed(double min, double max) {
    return {.min = min, .max = max};
  }
  // min <= value < max.
  static Range HalfOpen(double min, double max) {
    return {.min = min, .max = max, .max_included = false};
  }
  bool Contains(double value) const;
};

// The one value of a parameter: its default, or what the job says.
using ParameterValue = std::variant<bool, int64_t, double, std::string>;

// What is known of one parameter without a value of the struct.
struct ParameterInfo {
  std::string name;
  ParameterValue default_value;  // its alternative is the parameter's type
  std::string meaning;
  Range range;  // numbers only
};

// Collects what Visit declares; borrows the struct's members.
class ParameterList {
 public:
  template <class T>
  void operator()(std::string name, T& member, std::string meaning,
                  Range range = {}) {
    fields_.push_back(
        {{std::move(name), member, std::move(meaning), range}, &member});
  }

  // The declarations, in order.
  std::vector<ParameterInfo> Infos() const;

  // Sets the members from one JSON object. Errors: INVALID_ARGUMENT, see
  // CheckParameters; then no member was changed.
  absl::Status Assign(std::string_view json);

 private:
  struct Field {
    ParameterInfo info;
    std::variant<bool*, int64_t*, double*, std::string*> member;
  };
  std::vector<Field> fields_;
};

// Checks one JSON object against the declarations.
// Errors: INVALID_ARGUMENT naming all mistakes, each with its path, what came
// and what was expected, e.g.
//   spec.parameters.gama: unknown parameter, did you mean gamma? (known: ...)
//   spec.parameters.seed is "x", must be an integer
absl::Status CheckParameters(const std::vector<ParameterInfo>& known,
                             std::string_view json);

// [{"name","type","default","meaning","minimum"...}], with the names of JSON
// Schema for types and limits.
nlohmann::json ToJson(const std::vector<ParameterInfo>& parameters);

// The declarations of T, with T's defaults.
template <class T>
std::vector<ParameterInfo> Describe() {
  T parameters;
  ParameterList list;
  parameters.Visit(list);
  return list.Infos();
}

// A T from one JSON object; names that are absent keep T's defaults.
template <class T>
absl::StatusOr<T> ParseParameters(std::string_view json) {
  T parameters;
  ParameterList list;
  parameters.Visit(list);
  if (absl::Status status = list.Assign(json); !status.ok()) return status;
  return parameters;
}

// For messages about an unknown name: ", did you mean gamma?" if a known one is
// close enough (case, '_' and '-' do not count), else "".
std::string DidYouMean(std::string_view name,
                       const std::vector<std::string>& known);

}  // namespace disttrain
