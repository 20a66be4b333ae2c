// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/load_job.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/controller/cli/fake_worker.h"

namespace disttrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kGood[] =
    "apiVersion: disttrain.dev/v1alpha1\n"
    "kind: DistTrainingJob\n"
    "metadata: {name: cartpole}\n"
    "spec:\n"
    "  program: reinforce\n"
    "  roles:\n"
    "  - {name: agent}\n"
    "  - {name: observer, replicas: 2}\n";

class LoadJobTest : public testing::Test {
 protected:
  LoadedJob Load(const JobSource& source) {
    std::ostringstream out;
    std::ostringstream err;
    Streams streams{in_, out, err};
    return LoadManifest(source, streams);
  }

  // The messages for a manifest, without the file's path.
  std::vector<std::string> MistakesOf(
      const std::string& yaml, const std::vector<std::string>& sets = {}) {
    const std::string path = folder_.Write("job.yaml", yaml);
    std::vector<std::string> messages;
    for (const FieldError& error :
         Load({.path = path, .sets = sets, .worker = worker_}).errors) {
      std::string message = error.message;
      if (message.starts_with(folder_.path())) {
        message.erase(0, folder_.path().size() + 1);
      }
      messages.push_back(message);
    }
    return messages;
  }

  static std::string Replaced(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  TestFolder folder_;
  std::string worker_ = FakeWorker(folder_);
  std::istringstream in_;
};

TEST_F(LoadJobTest, ReadsAFileAndAppliesSets) {
  const LoadedJob loaded =
      Load({.path = folder_.Write("job.yaml", kGood),
            .sets = {"parameters.seed=7", "roles.observer.replicas=3",
                     "metadata.name=other", "parameters.seed=8"},
            .worker = worker_});
  ASSERT_TRUE(loaded.job.has_value());
  EXPECT_EQ(loaded.job->name, "other");
  EXPECT_EQ(loaded.job->spec.roles[1].replicas, 3);
  EXPECT_EQ(loaded.job->spec.parameters, Json({{"seed", 8}}));
}

TEST_F(LoadJobTest, ReadsStandardInput) {
  in_.str(kGood);
  EXPECT_TRUE(Load({.path = "-", .worker = worker_}).job.has_value());
  in_.clear();
  in_.str("a: [");
  const LoadedJob loaded = Load({.path = "-", .worker = worker_});
  ASSERT_EQ(loaded.errors.size(), 1u);
  EXPECT_THAT(loaded.errors[0].message, StartsWith("standard input: line "));
}

TEST_F(LoadJobTest, SaysWhereEachMistakeIs) {
  EXPECT_THAT(MistakesOf(Replaced("replicas: 2", "replicas: two")),
              ElementsAre("job.yaml:8: spec.roles[1].replicas is \"two\" "
                          "(string), must be an integer in [1, 9999]"));
  EXPECT_THAT(MistakesOf(Replaced("replicas: 2", "replcas: 2")),
              ElementsAre("job.yaml:8: spec.roles[1].replcas is an unknown "
                          "field; did you mean replicas?"));
  EXPECT_THAT(MistakesOf(Replaced("reinforce", "reinforze")),
              ElementsAre(StartsWith("job.yaml:5: spec.program is "
                                     "\"reinforze\"")));
  EXPECT_THAT(MistakesOf(Replaced("name: observer", "name: agent")),
              testing::Contains(StartsWith("job.yaml:8: spec.roles[1].name is "
                                           "\"agent\", the name of")));
  EXPECT_THAT(
      MistakesOf(Replaced("name: cartpole", "name: " + std::string(41, 'a'))),
      ElementsAre(AllOf(StartsWith("job.yaml:3: metadata.name"),
                        HasSubstr("it has 41"))));
  EXPECT_THAT(MistakesOf(Replaced("replicas: 2",
                                  "elastic: {minReplicas: 1, maxReplicas: 2}")),
              ElementsAre("job.yaml:8: spec.roles[1].elastic is not supported "
                          "yet; leave it out"));
}

TEST_F(LoadJobTest, BlamesASetForItsOwnMistake) {
  EXPECT_THAT(MistakesOf(kGood, {"roles[1].replicas=0"}),
              ElementsAre(StartsWith("--set roles[1].replicas=0: "
                                     "spec.roles[1].replicas is 0")));
  EXPECT_THAT(MistakesOf(kGood, {"parameters.gama=0.9"}),
              ElementsAre(AllOf(StartsWith("--set parameters.gama=0.9: "
                                           "spec.parameters.gama"),
                                HasSubstr("did you mean gamma?"))));
  EXPECT_THAT(MistakesOf(kGood, {"nothing"}),
              ElementsAre("--set nothing: must be path=value"));
}

TEST_F(LoadJobTest, NamesAFileThatCannotBeRead) {
  const auto message_of = [&](const std::string& path) {
    const LoadedJob loaded = Load({.path = path, .worker = worker_});
    return loaded.errors.size() == 1 ? loaded.errors[0].message : "";
  };
  EXPECT_EQ(message_of("/no/such/file.yaml"),
            "/no/such/file.yaml: cannot be opened: No such file or directory");
  EXPECT_EQ(message_of(folder_.path()),
            folder_.path() + ": cannot be read: Is a directory");
  EXPECT_EQ(message_of(folder_.Write("empty", "")),
            folder_.path() + "/empty: the manifest is empty");
  EXPECT_THAT(message_of(""), HasSubstr("-f FILE"));
  EXPECT_THAT(
      message_of(folder_.Write("large", std::string(size_t{2} << 20, '#'))),
      HasSubstr("must have at most 1048576"));
}

TEST_F(LoadJobTest, WarnsOnlyOfADefaultWorkerThatIsMissing) {
  const std::string path = folder_.Write("job.yaml", kGood);
  const LoadedJob given = Load({.path = path,
                                .worker = folder_.path() + "/nobody",
                                .worker_optional = true});
  EXPECT_FALSE(given.job.has_value());
  ASSERT_EQ(given.errors.size(), 1u);
  EXPECT_THAT(given.errors[0].message, HasSubstr("nobody"));
}

TEST_F(LoadJobTest, GivesAStatusWithAMistakeALine) {
  const std::string path = folder_.Write(
      "job.yaml", Replaced("{name: agent}", "{name: agent, replicas: 0}") +
                      "  sucessPolicy: {}\n");
  std::ostringstream out;
  std::ostringstream err;
  Streams streams{in_, out, err};
  const absl::StatusOr<Job> job =
      LoadJob({.path = path, .worker = worker_}, streams);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(job.status()),
              AllOf(HasSubstr("job.yaml:7: spec.roles[0].replicas"),
                    HasSubstr("\n"), HasSubstr("job.yaml:9: spec.sucess")));
}

TEST_F(LoadJobTest, NeedsNoWorkerWithoutAProgram) {
  const std::string path = folder_.Write(
      "job.yaml",
      "apiVersion: disttrain.dev/v1alpha1\nkind: DistTrainingJob\n"
      "metadata: {name: x}\nspec:\n  roles:\n  - name: all\n    template: "
      "{spec: {containers: [{name: w, command: [\"true\"]}]}}\n");
  const LoadedJob loaded =
      Load({.path = path, .worker = folder_.path() + "/nobody"});
  EXPECT_TRUE(loaded.job.has_value());
  EXPECT_THAT(loaded.warnings, IsEmpty());
}

}  // namespace
}  // namespace disttrain
