// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/manifest.h"

#include "controller/cli/yaml_scalar.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using testing::HasSubstr;

Json JsonOf(const std::string& yaml) {
  const absl::StatusOr<Json> json = ManifestFromYaml(yaml);
  EXPECT_TRUE(json.ok()) << yaml << ": " << json.status();
  return json.ok() ? *json : Json();
}

std::string ErrorIn(const std::string& yaml) {
  const absl::StatusOr<Json> json = ManifestFromYaml(yaml);
  if (json.ok()) return "no error: " + json->dump();
  EXPECT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(json.status());
}

TEST(Manifest, ReadsScalarsByTheCoreSchema) {
  const struct {
    const char* yaml;
    const char* json;
  } cases[] = {
      {"1", "1"},
      {"-1", "-1"},
      {"+7", "7"},
      {"0", "0"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"0o17", "15"},
      {"0x1F", "31"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"1.", "1.0"},
      {"1e3", "1000.0"},
      {"-1.5E-3", "-0.0015"},
      {"99999999999999999999", "99999999999999999999.0"},
      {"true", "true"},
      {"False", "false"},
      {"null", "null"},
      {"~", "null"},
      {"", "null"},
      {"yes", "\"yes\""},
      {"no", "\"no\""},
      {"on", "\"on\""},
      {"1_000", "\"1_000\""},
      {"1:30", "\"1:30\""},
      {"1.2.3", "\"1.2.3\""},
      {"2026-01-05", "\"2026-01-05\""},
      {"0x", "\"0x\""},
      {"1e", "\"1e\""},
      {".", "\".\""},
      {"-", "[null]"},
      {"'1'", "\"1\""},
      {"\"true\"", "\"true\""},
      {"''", "\"\""},
      {"|\n   12\n", "\"12\\n\""},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(
        JsonOf(fmt::format(
            "k: {}\n", std::string(test.yaml) == "-" ? "[~]" : test.yaml))["k"],
        Json::parse(test.json))
        << test.yaml;
  }
}

TEST(Manifest, RefusesNumbersThatParsersReadDifferently) {
  EXPECT_THAT(ErrorIn("a: 0644"), HasSubstr("line 1, column 4: 0644 is octal"));
  EXPECT_THAT(ErrorIn("a: .inf"), HasSubstr(".inf is not a number"));
  EXPECT_THAT(ErrorIn("a: 1e999"), HasSubstr("beyond the range"));
  EXPECT_EQ(JsonOf("a: '0644'")["a"], "0644");
}

TEST(Manifest, ReadsJson) {
  EXPECT_EQ(JsonOf(R"({"a":{"b":[1,"2",null,true]},"c":"\u00e4"})"),
            Json::parse(R"({"a":{"b":[1,"2",null,true]},"c":"ä"})"));
}

TEST(Manifest, ReadsBlocksAnchorsAndAliases) {
  EXPECT_EQ(JsonOf("a: &x\n  - 1\n  - {b: c}\nd: *x\n"),
            Json::parse(R"({"a": [1, {"b": "c"}], "d": [1, {"b": "c"}]})"));
}

TEST(Manifest, KnowsTheLineOfEachField) {
  const absl::StatusOr<Manifest> manifest = ParseManifest(
      "# a job\n"
      "spec:\n"
      "  roles:\n"
      "  - name: agent\n"
      "    replicas: 1\n"
      "  - {name: observer}\n"
      "  limits: {nvidia.com/gpu: 1}\n");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->LineOf("spec"), 2);
  EXPECT_EQ(manifest->LineOf("spec.roles"), 3);
  EXPECT_EQ(manifest->LineOf("spec.roles[0].replicas"), 5);
  EXPECT_EQ(manifest->LineOf("spec.roles[1].name"), 6);
  EXPECT_EQ(manifest->LineOf("spec.roles[1].missing.deep"), 6);
  EXPECT_EQ(manifest->LineOf("spec.limits[\"nvidia.com/gpu\"]"), 7);
}

TEST(Manifest, RefusesDuplicateKeysWithBothLines) {
  EXPECT_THAT(
      ErrorIn("spec:\n  suspend: true\n  program: x\n  suspend: false\n"),
      HasSubstr("line 4, column 3: spec.suspend is given twice, first in line "
                "2"));
}

TEST(Manifest, RefusesWhatIsNoSingleDocument) {
  EXPECT_THAT(ErrorIn(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorIn("# only a comment\n"), HasSubstr("empty"));
  EXPECT_THAT(ErrorIn("---\n---\n"), HasSubstr("empty"));
  EXPECT_THAT(ErrorIn("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_EQ(JsonOf("---\na: 1\n---\n"), Json::parse(R"({"a": 1})"));
}

TEST(Manifest, RefusesTagsMergeKeysAndKeysThatAreNoScalars) {
  EXPECT_THAT(ErrorIn("a: !!int '7'"), HasSubstr("tags are not supported"));
  EXPECT_THAT(ErrorIn("a: !x {b: 1}"), HasSubstr("tags are not supported"));
  EXPECT_THAT(ErrorIn("a: &x {b: 1}\nc:\n  <<: *x\n"),
              HasSubstr("merge keys (<<) are not supported"));
  EXPECT_THAT(ErrorIn("? [a]\n: 1\n"), HasSubstr("a key must be a scalar"));
  EXPECT_THAT(ErrorIn("? {a: 1}\n: 1\n"), HasSubstr("a key must be a scalar"));
  EXPECT_THAT(ErrorIn("a: &x b\n*x : 1\n"), HasSubstr("cannot be a key"));
  EXPECT_THAT(ErrorIn("~: 1\n"), HasSubstr("a key must be a scalar"));
}

TEST(Manifest, NamesLineAndColumnOfSyntaxErrors) {
  EXPECT_THAT(ErrorIn("{["), HasSubstr("line 1"));
  EXPECT_THAT(ErrorIn("a: 1\n b: 2\n"), HasSubstr("line 2, column 3"));
  EXPECT_THAT(ErrorIn("a: *nobody"), HasSubstr("line 1, column 4"));
  EXPECT_THAT(ErrorIn("a: 'x"), HasSubstr("line "));
}

// Each level holds ten aliases of the one before.
std::string Bomb(int levels) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < levels; ++i) {
    yaml += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 10; ++k) {
      yaml += fmt::format("{}*a{}", k == 0 ? "" : ", ", i - 1);
    }
    yaml += "]\n";
  }
  return yaml;
}

TEST(Manifest, FindsABombBeforeItIsExpanded) {
  EXPECT_THAT(ErrorIn(Bomb(12)),
              HasSubstr("with this alias expanded the document is larger"));
  std::string strings = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) strings += "*a, ";
  EXPECT_THAT(ErrorIn(strings + "*a]\n"), HasSubstr("alias expanded"));
}

TEST(Manifest, RefusesAnAliasToWhatContainsIt) {
  EXPECT_THAT(ErrorIn("a: &a [1, *a]\n"),
              HasSubstr("an alias to a node that contains it"));
}

TEST(Manifest, LimitsDepthSizeAndNodes) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ManifestFromYaml(nested(kMaxManifestDepth)).ok());
  EXPECT_THAT(ErrorIn(nested(kMaxManifestDepth + 1)),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(ErrorIn(nested(100'000)), HasSubstr("line 1"));
  EXPECT_THAT(ErrorIn("a: " + std::string(kMaxManifestBytes, 'x')),
              HasSubstr("must have at most 1048576"));
  std::string many = "[";
  while (many.size() < kMaxManifestBytes - 3) many += "1,";
  EXPECT_THAT(ErrorIn(many + "1]"), HasSubstr("too many nodes"));
}

TEST(Manifest, RefusesWhatIsNoUtf8) {
  EXPECT_THAT(ErrorIn("a: \xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorIn(std::string("a\0:\0 \0", 6)), HasSubstr("not UTF-8"));
  EXPECT_EQ(JsonOf("\xEF\xBB\xBF"
                   "a: 1"),
            Json::parse(R"({"a": 1})"));
}

}  // namespace
}  // namespace disttrain
