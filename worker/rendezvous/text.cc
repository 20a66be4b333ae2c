// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/text.h"

#include <algorithm>

#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr size_t kMaxNames = 32;

// Bytes of the valid UTF-8 sequence at the start of `text`; 0 if there is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  const bool bad =
      (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90);
  return bad ? 0 : length;
}

}  // namespace

std::string OneLine(std::string_view text, size_t max_bytes) {
  std::string line;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const size_t taken = std::max<size_t>(length, 1);
    if (line.size() + taken > max_bytes) break;
    const auto lead = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      line += '?';
    } else if (lead < 0x20 || lead == 0x7f) {
      line += ' ';
    } else {
      line += text.substr(0, length);
    }
    text.remove_prefix(taken);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string Describe(const v1::Member& member) {
  if (member.role().empty()) return fmt::format("rank {}", member.rank());
  const std::string role = fmt::format("rank {} ({} {}", member.rank(),
                                       member.role(), member.role_index());
  return member.pod().empty() ? role + ")"
                              : fmt::format("{}, pod {})", role, member.pod());
}

std::string Describe(const v1::Failure& failure) {
  std::string who = fmt::format("rank {}", failure.rank());
  if (!failure.role().empty()) {
    who += failure.pod().empty()
               ? fmt::format(" ({})", failure.role())
               : fmt::format(" ({}, pod {})", failure.role(), failure.pod());
  }
  return fmt::format(
      "{} failed: {}", who,
      failure.cause().empty() ? "no cause was given" : failure.cause());
}

std::string AreMissing(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() == 1) return fmt::format("rank {} is missing", list);
  if (names.size() > kMaxNames) {
    list += fmt::format(" and {} more", names.size() - kMaxNames);
  }
  return fmt::format("ranks {} are missing", list);
}

}  // namespace disttrain
