// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

// Regular expressions of failure rules: RE2's syntax, as Kubernetes' own
// (Go's), matched in time linear in the text whatever the expression.
namespace disttrain {

// INVALID_ARGUMENT with RE2's reason if `pattern` does not compile or would
// need more than 1 MiB.
absl::Status CheckPattern(const std::string& pattern);

// True if `pattern` occurs anywhere in `text`; false for one that does not
// compile.
bool PatternMatches(const std::string& pattern, std::string_view text);

}  // namespace disttrain
