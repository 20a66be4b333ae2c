// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

TEST(CommandLine, RunsTheJobWithoutWords) {
  EXPECT_EQ(*ParseCommandLine({}), Command::kRun);
}

TEST(CommandLine, KnowsItsOptions) {
  EXPECT_EQ(*ParseCommandLine({"--list-programs"}), Command::kListPrograms);
  EXPECT_EQ(*ParseCommandLine({"--help"}), Command::kHelp);
  EXPECT_EQ(*ParseCommandLine({"-h"}), Command::kHelp);
  EXPECT_EQ(*ParseCommandLine({"--version"}), Command::kVersion);
}

TEST(CommandLine, NamesTheWordItDoesNotKnow) {
  EXPECT_EQ(Message(ParseCommandLine({"--list-program"}).status()),
            "\"--list-program\" is no option, did you mean --list-programs? "
            "(see --help)");
  EXPECT_EQ(Message(ParseCommandLine({"--help", "me"}).status()),
            "\"me\": at most one option is expected");
}

TEST(CommandLine, HelpNamesTheBinaryAndItsOptions) {
  EXPECT_THAT(HelpText("my-worker"),
              testing::AllOf(testing::StartsWith("Usage: my-worker ["),
                             testing::HasSubstr("--list-programs"),
                             testing::HasSubstr("Examples:")));
}

}  // namespace
}  // namespace disttrain
