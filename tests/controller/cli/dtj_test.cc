// SPDX-License-Identifier: Apache-2.0
//
// The binary as a person's shell runs it. DTJ is its path, MANIFESTS the folder
// of the samples.
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "controller/cli/load_job.h"
#include "controller/cli/manifest.h"
#include "controller/reconcile/pod_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/controller/cli/fake_worker.h"

namespace disttrain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

class Dtj : public testing::Test {
 protected:
  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Runs "$DTJ arguments" in a shell.
  Result Run(const std::string& arguments) {
    const std::string out = folder_.path() + "/out";
    const std::string err = folder_.path() + "/err";
    const int status = std::system(
        ("\"$DTJ\" " + arguments + " >" + out + " 2>" + err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out),
            ReadFile(err)};
  }

  std::string WithWorker(const std::string& arguments) {
    return arguments + " --worker " + worker_;
  }

  TestFolder folder_;
  std::string worker_ = FakeWorker(folder_);
  std::string manifests_ = std::getenv("MANIFESTS");
  std::string cartpole_ = manifests_ + "/cartpole.yaml";
};

TEST_F(Dtj, ExplainsItselfAndEachCommand) {
  const Result overview = Run("--help");
  EXPECT_EQ(overview.code, 0);
  for (const char* command :
       {"run", "logs", "validate", "render", "version", "completion", "help"}) {
    EXPECT_THAT(overview.out, HasSubstr(std::string("\n  ") + command + " "));
    const Result help = Run(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out,
                AllOf(HasSubstr("Usage:\n  dtj "), HasSubstr("Examples:\n  ")));
    EXPECT_EQ(Run(std::string("help ") + command).out, help.out);
  }
  EXPECT_EQ(Run("help").out, overview.out);
}

TEST_F(Dtj, AnswersUsageErrorsWithCodeTwoAndAHint) {
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"", "Usage:"},
      {"vaildate", "unknown command vaildate; did you mean validate?"},
      {"--frobnicate", "unknown flag --frobnicate"},
      {"validate --fiel x", "unknown flag --fiel; did you mean --file?"},
      {"validate", "no manifest: give one with -f FILE"},
      {"validate -f", "-f needs a value"},
      {"validate x", "unexpected argument \"x\""},
      {"render -f x -o xml", "--output is \"xml\", must be yaml or json"},
      {"completion", "name a shell"},
      {"help nothing", "unknown command nothing"},
  };
  for (const auto& test : cases) {
    const Result result = Run(test.arguments);
    EXPECT_EQ(result.code, 2) << test.arguments;
    EXPECT_THAT(result.err, HasSubstr(test.message)) << test.arguments;
    EXPECT_EQ(result.out, "") << test.arguments;
  }
}

TEST_F(Dtj, PrintsItsVersion) {
  EXPECT_THAT(Run("version").out,
              AllOf(StartsWith("dtj "), HasSubstr("disttrain.dev/v1alpha1")));
  EXPECT_EQ(Run("--version").out, Run("version").out);
  const Json json = Json::parse(Run("version -o json").out);
  EXPECT_EQ(json["apiVersion"], "disttrain.dev/v1alpha1");
  EXPECT_THAT(json["version"], testing::MatchesRegex("[0-9]+\\.[0-9]+\\..*"));
}

TEST_F(Dtj, AcceptsTheSampleThatTrains) {
  const Result result = Run(WithWorker("validate -f " + cartpole_));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "job cartpole is valid: 3 processes in 2 roles, program "
            "reinforce\n");
  EXPECT_EQ(Run(WithWorker("validate -f - < " + cartpole_)).code, 0);
}

TEST_F(Dtj, NamesEveryMistakeOfTheSampleThatMustBeRefused) {
  const std::string arguments =
      WithWorker("validate -f " + manifests_ + "/illegal.yaml");
  const Result result = Run(arguments);
  EXPECT_EQ(result.code, 2);
  for (const char* message :
       {"illegal.yaml:17: metadata.name is ", "it has 41",
        "spec.program is \"reinforze\"", "did you mean reinforce?",
        "spec.roles[0].replicas is \"one\"", "spec.roles[1].name is \"agent\"",
        "spec.roles[1].replicas is 0", "spec.roles[2].replcas",
        "spec.roles[2].template.spec.containers[0].env[0].name is "
        "\"WORLD_SIZE\"",
        "spec.successPolicy.metric.threshold is 475",
        "spec.failurePolicy.rules[0].exitCodes[0] is 0"}) {
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  const Json json = Json::parse(Run(arguments + " -o json").out);
  EXPECT_EQ(json["valid"], false);
  std::vector<std::string> paths;
  for (const Json& error : json["errors"]) paths.push_back(error["path"]);
  EXPECT_THAT(paths, testing::IsSupersetOf({"metadata.name", "spec.program",
                                            "spec.roles[0].replicas",
                                            "spec.roles[1].name"}));
}

TEST_F(Dtj, ChecksWhatSetMakesOfTheManifest) {
  const std::string validate = WithWorker("validate -f " + cartpole_);
  EXPECT_THAT(Run(validate + " --set roles.observer.replicas=5").out,
              HasSubstr("6 processes"));
  const Result result = Run(validate + " --set parameters.sead=7");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("spec.parameters.sead"),
                                HasSubstr("did you mean seed?")));
}

TEST_F(Dtj, RendersYamlThatReadsAsThePodsThatAreCreated) {
  const Result yaml = Run(WithWorker("render -f " + cartpole_));
  ASSERT_EQ(yaml.code, 0) << yaml.err;
  const Json list =
      Json::parse(Run(WithWorker("render -o json -f " + cartpole_)).out);
  std::vector<Json> documents;
  std::istringstream lines(yaml.out);
  std::string document;
  const auto finish = [&] {
    const absl::StatusOr<Json> json = ManifestFromYaml(document);
    ASSERT_TRUE(json.ok()) << json.status() << document;
    documents.push_back(*json);
    document.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line == "---") {
      finish();
    } else {
      document += line + "\n";
    }
  }
  finish();
  EXPECT_EQ(Json(documents), list["items"]);

  ASSERT_EQ(documents.size(), 4u);
  EXPECT_EQ(documents[0]["kind"], "Service");
  Streams streams;
  absl::StatusOr<Job> job =
      LoadJob({.path = cartpole_, .worker = worker_}, streams);
  ASSERT_TRUE(job.ok()) << job.status();
  job->uid = "00000000-0000-0000-0000-000000000000";
  const std::pair<size_t, int> places[] = {{0, 0}, {1, 0}, {1, 1}};
  for (size_t i = 0; i < 3; ++i) {
    Json pod = PodFor(*job, places[i].first, places[i].second, 0, 0, {});
    pod["metadata"].erase("ownerReferences");
    EXPECT_EQ(documents[i + 1], pod);
  }
}

TEST_F(Dtj, CompletesItselfInEveryShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Result result = Run(std::string("completion ") + shell);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, AllOf(HasSubstr("validate"), HasSubstr("worker")));
    const std::string script = folder_.Write(shell, result.out);
    // Checked by the shell itself, where it is installed.
    const std::string check = std::string("! command -v ") + shell +
                              " >/dev/null || " + shell + " -n " + script;
    EXPECT_EQ(std::system(check.c_str()), 0) << shell;
  }
}

TEST_F(Dtj, OffersCommandsFlagsAndValuesInBash) {
  const std::string script =
      folder_.Write("completion", Run("completion bash").out);
  const auto completed = [&](const std::string& words, int current) {
    const std::string command =
        "bash -c 'source " + script + "; COMP_WORDS=(" + words +
        "); COMP_CWORD=" + std::to_string(current) +
        "; _dtj; echo ${COMPREPLY[*]}' >" + folder_.path() + "/out";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return ReadFile(folder_.path() + "/out");
  };
  EXPECT_EQ(completed("dtj va", 1), "validate\n");
  EXPECT_EQ(completed("dtj validate --fi", 2), "--file\n");
  EXPECT_EQ(completed("dtj validate -o j", 3), "json\n");
  EXPECT_EQ(completed("dtj completion f", 2), "fish\n");
}

}  // namespace
}  // namespace disttrain
