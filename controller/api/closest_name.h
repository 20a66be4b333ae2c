// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace disttrain {

// The known name that `name` was probably meant to be: at most one typing error
// (a letter too many, missing, wrong, or two swapped) for every three letters.
// Case, '_' and '-' do not count. "" if none is that close.
std::string ClosestName(std::string_view name,
                        const std::vector<std::string>& known);

// "; did you mean X?" for ClosestName, "" if there is none.
std::string DidYouMean(std::string_view name,
                       const std::vector<std::string>& known);

}  // namespace disttrain
