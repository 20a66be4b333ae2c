// SPDX-License-Identifier: Apache-2.0
#include "controller/api/closest_name.h"

#include <algorithm>
#include <cctype>

#include "fmt/format.h"

namespace disttrain {
namespace {

// Longer names are somebody's data, not a typing error.
constexpr size_t kLongestName = 64;

std::string Normalized(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// Optimal string alignment: Levenshtein's distance in which swapping two
// neighbours counts once.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1,
                                     std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string ClosestName(std::string_view name,
                        const std::vector<std::string>& known) {
  const std::string meant = Normalized(name);
  if (meant.empty() || meant.size() > kLongestName) return "";
  size_t best = std::max<size_t>(1, meant.size() / 3) + 1;
  std::string closest;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(meant, Normalized(candidate));
    if (distance < best && distance < candidate.size()) {
      best = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view name,
                       const std::vector<std::string>& known) {
  const std::string closest = ClosestName(name, known);
  return closest.empty() ? "" : fmt::format("; did you mean {}?", closest);
}

}  // namespace disttrain
