// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/api/job.h"

namespace disttrain {

// A plain (unquoted) YAML scalar by the core schema of YAML 1.2: null, true and
// false, decimal, 0o octal and 0x hexadecimal integers, floats; all else is a
// string, also yes, no, on, off and 1_000. "" and ~ are null.
//
// Errors: INVALID_ARGUMENT for what JSON cannot say (.inf, .nan) and for an
// integer with leading zeros, which older parsers read as octal.
absl::StatusOr<Json> PlainScalar(std::string_view text);

// True if some YAML parser (1.1 or 1.2) would read plain `text` as something
// else than this string, so that an emitter must quote it.
bool NeedsQuotes(std::string_view text);

}  // namespace disttrain
