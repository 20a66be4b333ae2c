// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/utf8.h"

#include "gtest/gtest.h"

namespace disttrain {
namespace {

TEST(Utf8, KeepsWhatIsValid) {
  EXPECT_EQ(ValidUtf8("a\nñ€😀"), "a\nñ€😀");
  EXPECT_EQ(ValidUtf8(""), "");
  EXPECT_EQ(ValidUtf8(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Utf8, ReplacesWrongBytes) {
  EXPECT_EQ(ValidUtf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ValidUtf8("\xC3"), "\xEF\xBF\xBD");  // cut in the middle
  EXPECT_EQ(ValidUtf8("\xC0\xAF"),
            "\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong slash
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");     // surrogate
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80").size(), 12u);  // above U+10FFFF
  EXPECT_EQ(ValidUtf8("\xE2\x82z"), "\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(Utf8, ShortensAtACharactersBorder) {
  EXPECT_EQ(Shortened("short", 5), "short");
  EXPECT_EQ(Shortened("longer", 4), "long…");
  EXPECT_EQ(Shortened("a€€", 3), "a…");
}

TEST(Utf8, PrintableEscapesControlCharacters) {
  EXPECT_EQ(Printable("a\n\t\r\x1b[2J\x7f€"), "a\\n\\t\\r\\x1b[2J\\x7f€");
  EXPECT_EQ(Printable("\xC2\x9B"), "\\x9b");  // C1's CSI
  EXPECT_EQ(Printable("\xFE"), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace disttrain
