// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Kubernetes' rules for names, and the variables that are ours.
namespace disttrain {

// RFC 1035: a letter, then letters, digits and '-', not ending in '-'; lower
// case, 1..max_length characters.
bool IsRfc1035Label(std::string_view name, size_t max_length = 63);

// RFC 1123: like RFC 1035, but may begin with a digit.
bool IsRfc1123Label(std::string_view name, size_t max_length = 63);

// RFC 1123 labels joined by '.', 1..253 characters.
bool IsDnsSubdomain(std::string_view name);

// "name" or "prefix.domain/name", as keys of labels and annotations are.
bool IsLabelKey(std::string_view key);

// "", or <= 63 letters, digits, '-', '_', '.', with a letter or digit at both
// ends.
bool IsLabelValue(std::string_view value);

// A variable that every process of a job gets from us (proto/contract/env.h),
// so that a template may not set it: DISTTRAIN_*, and torchrun's names.
bool IsReservedVariable(std::string_view name);

}  // namespace disttrain
