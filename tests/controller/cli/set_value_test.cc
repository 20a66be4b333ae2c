// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/set_value.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using testing::HasSubstr;

Json Manifest() {
  return Json::parse(R"({
    "metadata": {"name": "cartpole"},
    "spec": {"parameters": {"seed": 543},
             "roles": [{"name": "agent"}, {"name": "observer", "replicas": 2}]}
  })");
}

// The value at `pointer` after --set.
Json After(const std::string& argument, const std::string& pointer) {
  Json manifest = Manifest();
  const absl::StatusOr<std::string> path = ApplySet(argument, manifest);
  EXPECT_TRUE(path.ok()) << path.status();
  return manifest.value(Json::json_pointer(pointer), Json("nothing there"));
}

std::string ErrorOfSet(const std::string& argument) {
  Json manifest = Manifest();
  const absl::StatusOr<std::string> path = ApplySet(argument, manifest);
  EXPECT_EQ(manifest, Manifest());
  return path.ok() ? "no error" : Message(path.status());
}

TEST(SetValue, TakesPathsFromSpecOrWrittenOut) {
  EXPECT_EQ(After("parameters.seed=7", "/spec/parameters/seed"), 7);
  EXPECT_EQ(After("spec.parameters.seed=7", "/spec/parameters/seed"), 7);
  EXPECT_EQ(After("metadata.name=x", "/metadata/name"), "x");
}

TEST(SetValue, FindsElementsByIndexOrName) {
  EXPECT_EQ(After("roles[1].replicas=3", "/spec/roles/1/replicas"), 3);
  EXPECT_EQ(After("roles.observer.replicas=3", "/spec/roles/1/replicas"), 3);
  EXPECT_EQ(After("roles[2].name=ps", "/spec/roles/2/name"), "ps");
}

TEST(SetValue, MakesMissingObjects) {
  EXPECT_EQ(
      After("failurePolicy.maxRestarts=0", "/spec/failurePolicy/maxRestarts"),
      0);
  EXPECT_EQ(After("roles[0].template.spec.containers[0].resources.limits"
                  "[\"nvidia.com/gpu\"]=1",
                  "/spec/roles/0/template/spec/containers/0/resources/limits/"
                  "nvidia.com~1gpu"),
            1);
}

TEST(SetValue, ReadsValuesAsYamlScalars) {
  EXPECT_EQ(After("parameters.x=1.5", "/spec/parameters/x"), 1.5);
  EXPECT_EQ(After("parameters.x=true", "/spec/parameters/x"), true);
  EXPECT_EQ(After("parameters.x=null", "/spec/parameters/x"), nullptr);
  EXPECT_EQ(After("parameters.x=", "/spec/parameters/x"), "");
  EXPECT_EQ(After("parameters.x=a: b=c", "/spec/parameters/x"), "a: b=c");
  EXPECT_EQ(After("parameters.x='7'", "/spec/parameters/x"), "7");
  EXPECT_EQ(After("parameters.x=[1, two]", "/spec/parameters/x"),
            Json::parse(R"([1, "two"])"));
}

TEST(SetValue, SaysWhichFieldItSet) {
  Json manifest = Manifest();
  EXPECT_EQ(*ApplySet("roles.observer.replicas=3", manifest),
            "spec.roles[1].replicas");
}

TEST(SetValue, NamesTheArgumentAndWhatIsWrong) {
  EXPECT_EQ(ErrorOfSet("parameters.seed"),
            "--set parameters.seed: must be path=value");
  EXPECT_EQ(ErrorOfSet("parameters.seed.x=1"),
            "--set parameters.seed.x=1: spec.parameters.seed is 543 (number), "
            "not an object");
  EXPECT_EQ(ErrorOfSet("parameters[0]=1"),
            "--set parameters[0]=1: spec.parameters is {\"seed\":543} "
            "(object), not a list");
  EXPECT_EQ(ErrorOfSet("roles.observr.replicas=1"),
            "--set roles.observr.replicas=1: spec.roles has no element named "
            "observr; did you mean observer?");
  EXPECT_EQ(ErrorOfSet("roles[7].replicas=1"),
            "--set roles[7].replicas=1: spec.roles has 2 elements, so [7] is "
            "beyond its end");
  for (const char* bad :
       {"=1", ".a=1", "a..b=1", "a.=1", "[0]=1", "a[=1", "a[x]=1", "a[0=1",
        "a[0]b=1", "a[\"b=1", "a[-1]=1", "a[99999999999999999999]=1"}) {
    EXPECT_THAT(ErrorOfSet(bad), HasSubstr("the path \"")) << bad;
  }
  EXPECT_THAT(ErrorOfSet("a=0644"), HasSubstr("octal"));
  EXPECT_THAT(ErrorOfSet("a=\xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOfSet("a=[1"), HasSubstr("line 1"));
}

}  // namespace
}  // namespace disttrain
