// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/rank_set.h"

#include <charconv>
#include <optional>

#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr int kMaxRank = 1 << 20;

std::optional<int> Number(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0 ||
      number >= kMaxRank) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::string FormatRanks(const std::set<int>& ranks) {
  std::string text;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first;
    auto next = std::next(first);
    while (next != ranks.end() && *next == *last + 1) last = next++;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", *first)
                          : fmt::format("{}-{}", *first, *last);
    first = next;
  }
  return text;
}

std::set<int> ParseRanks(std::string_view text) {
  std::set<int> ranks;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const auto first = Number(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : Number(part.substr(dash + 1));
    if (first && last) {
      for (int rank = *first; rank <= *last; ++rank) ranks.insert(rank);
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return ranks;
}

}  // namespace disttrain
