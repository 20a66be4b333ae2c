// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/program_catalog.h"

#include "absl/time/clock.h"
#include "controller/cli/capture_output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/controller/cli/fake_worker.h"

namespace disttrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

JobSpec Reinforce() {
  JobSpec spec;
  spec.program = "reinforce";
  spec.roles.resize(2);
  spec.roles[0].name = "agent";
  spec.roles[1].name = "observer";
  spec.roles[1].replicas = 2;
  return spec;
}

std::vector<std::string> MistakesOf(const JobSpec& spec) {
  const absl::StatusOr<std::vector<CatalogEntry>> programs =
      ParseCatalog(kCatalog);
  EXPECT_TRUE(programs.ok()) << programs.status();
  std::vector<std::string> messages;
  for (const FieldError& error : CheckProgram(spec, *programs)) {
    EXPECT_THAT(error.message, testing::StartsWith(error.path));
    messages.push_back(error.message);
  }
  return messages;
}

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

TEST(ProgramCatalog, AcceptsAJobThatFits) {
  JobSpec spec = Reinforce();
  spec.parameters = Json::parse(
      R"({"gamma": 1, "seed": 7, "require_solved": true, "device": "cpu"})");
  EXPECT_THAT(MistakesOf(spec), IsEmpty());
}

TEST(ProgramCatalog, NamesAnUnknownProgram) {
  JobSpec spec = Reinforce();
  spec.program = "reinforze";
  EXPECT_THAT(MistakesOf(spec),
              ElementsAre("spec.program is \"reinforze\", no program of this "
                          "worker; did you mean reinforce? (known: "
                          "reinforce)"));
}

TEST(ProgramCatalog, RefusesToReplaceWhatTheProgramNeeds) {
  JobSpec spec = Reinforce();
  spec.roles[1].restart = RestartScope::kRank;
  EXPECT_THAT(MistakesOf(spec), IsEmpty());
  spec.roles[0].restart = RestartScope::kRank;
  EXPECT_THAT(MistakesOf(spec),
              ElementsAre("spec.roles[0].restart is Rank, must be Gang: "
                          "reinforce cannot do without a rank of role agent"));
}

TEST(ProgramCatalog, NamesUnknownMissingAndTooManyRoles) {
  JobSpec spec = Reinforce();
  spec.roles[0].replicas = 2;
  spec.roles[1].name = "observr";
  EXPECT_THAT(
      MistakesOf(spec),
      ElementsAre(
          "spec.roles lacks the role observer; reinforce has the roles agent, "
          "observer",
          "spec.roles[0].replicas make 2 processes, must make at most 1: "
          "reinforce has only so many of role agent",
          "spec.roles[1].name is \"observr\", no role of reinforce; did you "
          "mean observer? (known: agent, observer)"));
  spec.roles.erase(spec.roles.begin());
  spec.roles[0].name = "observer";
  EXPECT_THAT(MistakesOf(spec),
              ElementsAre(HasSubstr("lacks the role agent (it runs the "
                                    "program)")));
}

TEST(ProgramCatalog, NamesUnknownParametersAndWrongValues) {
  JobSpec spec = Reinforce();
  spec.parameters = Json::parse(R"({
    "gama": 0.9, "gamma": "high", "episodes": 0, "learning_rate": 0,
    "seed": 1.5, "require_solved": 1, "device": 0})");
  EXPECT_THAT(
      MistakesOf(spec),
      testing::UnorderedElementsAre(
          "spec.parameters.gama is an unknown parameter of reinforce; did you "
          "mean gamma? (known: gamma, seed, learning_rate, episodes, "
          "require_solved, device)",
          "spec.parameters.gamma is \"high\" (string), must be a number >= 0 "
          "and <= 1",
          "spec.parameters.episodes is 0, must be an integer >= 1",
          "spec.parameters.learning_rate is 0, must be a number > 0",
          "spec.parameters.seed is 1.5 (number), must be an integer",
          "spec.parameters.require_solved is 1 (number), must be a boolean",
          "spec.parameters.device is 0 (number), must be a string"));
}

TEST(ProgramCatalog, HasNothingToSayWithoutAProgram) {
  JobSpec spec = Reinforce();
  spec.program = "";
  spec.roles.pop_back();
  EXPECT_THAT(MistakesOf(spec), IsEmpty());
}

TEST(ProgramCatalog, RefusesWhatIsNoCatalog) {
  for (const char* text : {"", "[]", "{}", "{\"programs\": [{}]}",
                           "{\"programs\": [{\"name\": 7}]}"}) {
    EXPECT_FALSE(ParseCatalog(text).ok()) << text;
  }
}

TEST(AskWorker, ReadsWhatTheWorkerPrints) {
  const TestFolder folder;
  const absl::StatusOr<std::vector<CatalogEntry>> programs =
      AskWorker(FakeWorker(folder), Soon());
  ASSERT_TRUE(programs.ok()) << programs.status();
  ASSERT_EQ(programs->size(), 1u);
  EXPECT_EQ((*programs)[0].driver, "agent");
}

TEST(AskWorker, NamesTheWorkerThatIsMissingOrBroken) {
  const TestFolder folder;
  const std::string missing = folder.path() + "/nobody";
  absl::Status status = AskWorker(missing, Soon()).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(missing));

  const std::string broken =
      folder.WriteScript("broken", "echo one >&2; echo two >&2; exit 3\n");
  status = AskWorker(broken, Soon()).status();
  EXPECT_THAT(Message(status), HasSubstr("it ended with code 3: two"));

  status =
      AskWorker(folder.WriteScript("odd", "echo hello\n"), Soon()).status();
  EXPECT_THAT(Message(status), HasSubstr("not a list of programs"));

  status = AskWorker(folder.Write("text", "x"), Soon()).status();
  EXPECT_THAT(Message(status), HasSubstr("cannot run"));
}

TEST(CaptureOutput, EndsAProgramAtTheDeadlineOrWhenItWritesTooMuch) {
  const TestFolder folder;
  const std::string endless =
      folder.WriteScript("endless", "exec sleep 1000\n");
  absl::Status status =
      CaptureOutput({endless}, absl::Now() + absl::Milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  status = CaptureOutput({folder.WriteScript("loud", "exec yes\n")}, Soon())
               .status();
  EXPECT_THAT(Message(status), HasSubstr("more than 4 MiB"));
  status = CaptureOutput({folder.WriteScript("killed", "kill -9 $$\n")}, Soon())
               .status();
  EXPECT_THAT(Message(status), HasSubstr("ended by signal 9"));
}

}  // namespace
}  // namespace disttrain
