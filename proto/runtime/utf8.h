// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttrain {

// `bytes` as valid UTF-8: what is not (also overlong forms, surrogates, values
// above U+10FFFF) becomes U+FFFD, one per wrong byte.
std::string ValidUtf8(std::string_view bytes);

// `text` if it has at most `max_bytes`; else cut at a character's border, with
// "…" at the end (not counted).
std::string Shortened(std::string_view text, size_t max_bytes);

// `bytes` for one line of a terminal or of an error message: valid UTF-8,
// control characters (C0, DEL, C1) written as escapes, so that no text from
// outside can move the cursor or start a line of its own.
std::string Printable(std::string_view bytes);

}  // namespace disttrain
