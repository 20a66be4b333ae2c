// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/utf8.h"

#include <cstdint>

#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

uint8_t ByteAt(std::string_view bytes, size_t i) {
  return static_cast<uint8_t>(bytes[i]);
}

// Length of the well-formed character at `i`, 0 if there is none (Unicode 15,
// table 3-7: only the second byte's range depends on the first).
size_t CharacterLength(std::string_view bytes, size_t i) {
  const uint8_t first = ByteAt(bytes, i);
  if (first < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  if (length == 0 || i + length > bytes.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    const uint8_t next = ByteAt(bytes, i + k);
    if (next < low || next > high) return 0;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

bool IsC1(std::string_view character) {
  return character.size() == 2 && ByteAt(character, 0) == 0xC2 &&
         ByteAt(character, 1) < 0xA0;
}

std::string Escaped(uint8_t control) {
  switch (control) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\x{:02x}", control);
  }
}

}  // namespace

std::string ValidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = CharacterLength(bytes, i);
    if (length == 0) {
      text += kReplacement;
      ++i;
    } else {
      text.append(bytes.substr(i, length));
      i += length;
    }
  }
  return text;
}

std::string Shortened(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes;
  while (end > 0 && (ByteAt(text, end) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string Printable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = CharacterLength(bytes, i);
    const std::string_view character = bytes.substr(i, length);
    const uint8_t first = ByteAt(bytes, i);
    if (length == 0) {
      text += kReplacement;
    } else if (first < 0x20 || first == 0x7F) {
      text += Escaped(first);
    } else if (IsC1(character)) {
      text += Escaped(ByteAt(character, 1));
    } else {
      text.append(character);
    }
    i += length == 0 ? 1 : length;
  }
  return text;
}

}  // namespace disttrain
