// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/yaml_emitter.h"

#include "controller/cli/manifest.h"
#include "gtest/gtest.h"

namespace disttrain {
namespace {

TEST(ToYaml, WritesBlockStyle) {
  EXPECT_EQ(ToYaml(Json::parse(R"({
    "kind": "Pod", "list": [1, {"a": true, "b": [null]}, [], "x y"],
    "empty": {}, "deep": {"er": {"est": 1.5}}})")),
            "deep:\n"
            "  er:\n"
            "    est: 1.5\n"
            "empty: {}\n"
            "kind: Pod\n"
            "list:\n"
            "- 1\n"
            "- a: true\n"
            "  b:\n"
            "  - null\n"
            "- []\n"
            "- \"x y\"\n");
}

TEST(ToYaml, QuotesWhatAnyParserCouldTakeForSomethingElse) {
  for (const char* text : {"1",     "0",          "1.5",
                           "1e3",   "0x1f",       "0644",
                           "1_000", "12:30:45",   "yes",
                           "No",    "on",         "OFF",
                           "y",     "N",          "true",
                           "NULL",  "~",          "",
                           "null",  ".inf",       "-",
                           "- a",   "a: b",       "a #b",
                           "#",     "&a",         "*a",
                           "!a",    "|",          ">",
                           "@a",    "`a",         "%a",
                           "{",     "}",          "[",
                           "a,b",   "2026-01-05", "=",
                           "<<",    "a\nb",       " a",
                           "a ",    "\"",         "'",
                           "\\",    "\t",         "ä",
                           "\x7f",  "\xc2\x85",   "\xf0\x9f\x98\x80"}) {
    const std::string yaml = ToYaml(Json{{"k", text}});
    EXPECT_EQ(yaml.substr(0, 4), "k: \"") << text;
    const absl::StatusOr<Json> read = ManifestFromYaml(yaml);
    ASSERT_TRUE(read.ok()) << yaml << read.status();
    EXPECT_EQ((*read)["k"], text);
  }
}

TEST(ToYaml, LeavesPlainWordsPlain) {
  for (const char* text : {"Pod", "v1", "disttrain.dev/v1alpha1", "/checkpoint",
                           "cartpole-agent-0", "_x"}) {
    EXPECT_EQ(ToYaml(Json(text)), std::string(text) + "\n");
  }
}

TEST(ToYaml, QuotesKeysToo) {
  EXPECT_EQ(ToYaml(Json{{"1", 1}, {"yes", 2}}), "\"1\": 1\n\"yes\": 2\n");
}

TEST(ToYaml, SeparatesDocuments) {
  EXPECT_EQ(ToYaml(std::vector<Json>{{{"a", 1}}, {{"b", 2}}}),
            "a: 1\n---\nb: 2\n");
}

}  // namespace
}  // namespace disttrain
