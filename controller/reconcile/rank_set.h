// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace disttrain {

// "1-2,4" for {1, 2, 4}; "" for none.
std::string FormatRanks(const std::set<int>& ranks);

// The reverse. What is no range of ranks in [0, 1'048'576) is skipped.
std::set<int> ParseRanks(std::string_view text);

}  // namespace disttrain
