// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/identity/identity.h"

namespace disttrain {

// `NAME="value"` for a message: printable, cut at 64 bytes.
std::string Assignment(const char* name, const std::string& value);

// Reads typed values from the environment and collects what is wrong with them.
// Every reading function returns nothing both for an absent variable and for a
// wrong one, whose mistake it has noted.
class EnvReader {
 public:
  explicit EnvReader(const GetEnv& get_env) : get_env_(get_env) {}

  // As it is; absent also if "".
  std::optional<std::string> Text(const char* name) const;

  // Text of printable ASCII without spaces, at most `max_bytes`.
  std::optional<std::string> Word(const char* name, size_t max_bytes);

  // Decimal digits and nothing else, in [min, max].
  std::optional<int> Int(const char* name, int min, int max);

  // Seconds, whole or with a fraction, in (0, max].
  std::optional<absl::Duration> Seconds(const char* name, absl::Duration max);

  // Whether the variable is there at all, even if it is "" or wrong.
  bool IsSet(const char* name) const { return get_env_(name).has_value(); }

  void Mistake(std::string mistake);

  // OK, or INVALID_ARGUMENT with all mistakes joined by "; ".
  absl::Status status() const;

 private:
  const GetEnv& get_env_;
  std::vector<std::string> mistakes_;
};

}  // namespace disttrain
