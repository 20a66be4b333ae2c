// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace disttrain {

// Reasons of the condition Accepted=False.
inline constexpr char kInvalidSpec[] = "InvalidSpec";
inline constexpr char kInvalidPodTemplate[] = "InvalidPodTemplate";
inline constexpr char kReservedVariable[] = "ReservedVariable";
inline constexpr char kNotSupported[] = "NotSupported";

// One mistake in a job.
struct FieldError {
  std::string path;     // "spec.roles[1].replicas"; "": the whole
  std::string message;  // a sentence that begins with the path
  std::string reason = kInvalidSpec;
};

// OK without errors, else INVALID_ARGUMENT: one message a line.
absl::Status ToStatus(const std::vector<FieldError>& errors);

// The reason for Accepted=False: that of the first error; "" without errors.
std::string RejectionReason(const std::vector<FieldError>& errors);

// "a.b", or a["b c"] where the key is not a plain name; "b" if `path` is "".
std::string Join(const std::string& path, const std::string& key);

// "a[3]".
std::string Join(const std::string& path, size_t index);

// True if `path` is `outer` or a field inside of it.
bool IsWithin(const std::string& path, const std::string& outer);

}  // namespace disttrain
