// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/flags.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CommandSpec Spec() {
  return {.name = "try",
          .summary = "Try flags",
          .positional = "[NAME]",
          .max_positionals = 1,
          .flags = {{.name = "file",
                     .letter = 'f',
                     .placeholder = "FILE",
                     .help = "a file"},
                    {.name = "set", .placeholder = "X=Y", .repeatable = true},
                    {.name = "quiet", .letter = 'q'},
                    {.name = "output",
                     .letter = 'o',
                     .placeholder = "FORMAT",
                     .choices = {"text", "json"}}},
          .examples = "  dtj try -f x"};
}

std::string ErrorOf(const std::vector<std::string>& args) {
  const absl::StatusOr<ParsedFlags> parsed = ParseFlags(Spec(), args);
  return parsed.ok() ? "no error" : Message(parsed.status());
}

TEST(Flags, TakeValuesInEverySpelling) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{
           {"--file", "x"}, {"--file=x"}, {"-f", "x"}, {"-fx"}, {"-f=x"}}) {
    const absl::StatusOr<ParsedFlags> parsed = ParseFlags(Spec(), args);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->Get("file"), "x");
  }
}

TEST(Flags, KeepAllValuesOfARepeatableFlag) {
  const absl::StatusOr<ParsedFlags> parsed = ParseFlags(
      Spec(), {"--set", "a=1", "name", "--set=b=2", "-q", "--file", "-"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->All("set"), ElementsAre("a=1", "b=2"));
  EXPECT_THAT(parsed->positionals(), ElementsAre("name"));
  EXPECT_TRUE(parsed->Has("quiet"));
  EXPECT_EQ(parsed->Get("file"), "-");
  EXPECT_FALSE(parsed->Has("output"));
  EXPECT_EQ(parsed->Get("output", "text"), "text");
  EXPECT_THAT(parsed->All("output"), IsEmpty());
}

TEST(Flags, EndAtTwoDashes) {
  const absl::StatusOr<ParsedFlags> parsed = ParseFlags(Spec(), {"--", "-q"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->positionals(), ElementsAre("-q"));
  EXPECT_FALSE(parsed->Has("quiet"));
}

TEST(Flags, SayWhatIsWrong) {
  EXPECT_EQ(ErrorOf({"--fiel", "x"}),
            "unknown flag --fiel; did you mean --file?");
  EXPECT_EQ(ErrorOf({"--frobnicate"}), "unknown flag --frobnicate");
  EXPECT_EQ(ErrorOf({"-z"}), "unknown flag -z");
  EXPECT_EQ(ErrorOf({"--file"}), "--file needs a value: --file FILE");
  EXPECT_EQ(ErrorOf({"-f"}), "-f needs a value: -f FILE");
  EXPECT_EQ(ErrorOf({"--quiet=yes"}), "--quiet takes no value");
  EXPECT_EQ(ErrorOf({"-qx"}), "-q takes no value");
  EXPECT_EQ(ErrorOf({"-f", "a", "-f", "b"}), "--file is given twice");
  EXPECT_EQ(ErrorOf({"-o", "jsn"}),
            "--output is \"jsn\", must be text or json; did you mean json?");
  EXPECT_EQ(ErrorOf({"a", "b"}), "unexpected argument \"b\"");
}

TEST(Flags, ExplainThemselves) {
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  Streams streams{in, out, err};
  EXPECT_EQ(ParseOrExplain(Spec(), {"--help"}, streams).exit_code, 0);
  EXPECT_THAT(out.str(), HasSubstr("Usage:\n  dtj try [flags] [NAME]"));
  EXPECT_THAT(out.str(), HasSubstr("-f, --file FILE"));
  EXPECT_THAT(out.str(), HasSubstr("dtj try -f x"));
  EXPECT_EQ(ParseOrExplain(Spec(), {"--nope"}, streams).exit_code, 2);
  EXPECT_THAT(err.str(), HasSubstr("dtj try: unknown flag --nope"));
  EXPECT_EQ(ParseOrExplain(Spec(), {"-q"}, streams).exit_code, std::nullopt);
}

}  // namespace
}  // namespace disttrain
