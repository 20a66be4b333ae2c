// SPDX-License-Identifier: Apache-2.0
#include "controller/api/validate_template.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/controller/api/jobs.h"

namespace disttrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<FieldError> ErrorsOf(const std::string& pod_template,
                                 const AdmissionOptions& options = {}) {
  return ParseAndValidate(
             With("/spec/roles/0/template", Json::parse(pod_template)), options)
      .errors;
}

// The template of one container with one more field.
std::string Container(const std::string& field) {
  return R"({"spec": {"containers": [{"name": "w", )" + field + "}]}}";
}

struct Case {
  std::string pod_template;
  std::string message;  // without "spec.roles[0].template"
};

TEST(ValidateTemplate, NamesEachMistake) {
  const Case cases[] = {
      {R"({"spec": 7})", ".spec is 7, must be an object"},
      {R"({"sepc": {}})", ".sepc is an unknown field; did you mean spec?"},
      {R"({"spec": {"containers": []}})",
       ".spec.containers has 0 elements, must have 1 to 20"},
      {R"({"spec": {"containers": {"name": "w"}}})",
       ".spec.containers is {\"name\":\"w\"}, must be a list"},
      {R"({"spec": {"containers": [{"image": "i"}]}})",
       ".spec.containers[0].name is missing"},
      {R"({"spec": {"containers": [{"name": "w"}, {"name": "w"}]}})",
       ".spec.containers[1].name is \"w\", must be unique within the pod"},
      {R"({"spec": {"containers": [{"name": "w"}],
           "initContainers": [{"name": "w"}]}})",
       ".spec.initContainers[0].name is \"w\", must be unique within the pod"},
      {R"({"spec": {"restartPolicy": "Always"}})",
       ".spec.restartPolicy is \"Always\", must be Never or absent: restarts "
       "are spec.failurePolicy's"},
      {R"({"spec": {"hostname": "x"}})",
       ".spec.hostname is set by disttrain itself; leave it out"},
      {R"({"metadata": {"labels": {"disttrain.dev/rank": "7"}}})",
       ".metadata.labels[\"disttrain.dev/rank\"] is set by disttrain itself; "
       "choose another prefix"},
      {R"({"metadata": {"labels": {"a": 7}}})",
       ".metadata.labels.a is 7, must be a string"},
      {Container(R"("resorces": {})"),
       ".spec.containers[0].resorces is an unknown field; did you mean "
       "resources?"},
      {Container(R"("env": [{"value": "1"}])"),
       ".spec.containers[0].env[0].name is missing"},
      {Container(R"("env": [{"name": "A", "value": 1}])"),
       ".spec.containers[0].env[0].value is 1, must be a string"},
      {Container(R"("resources": {"limits": {"nvidia.com/gpu": "500m"}})"),
       ".spec.containers[0].resources.limits[\"nvidia.com/gpu\"] is \"500m\", "
       "must be a whole number of at most 128"},
  };
  for (const Case& test : cases) {
    EXPECT_THAT(Messages(ErrorsOf(test.pod_template)),
                ElementsAre("spec.roles[0].template" + test.message))
        << test.pod_template;
  }
}

TEST(ValidateTemplate, AcceptsWhatItDoesNotKnow) {
  EXPECT_THAT(Messages(ErrorsOf(R"({"spec": {
      "serviceAccountName": "trainer", "somethingOfTomorrow": 1,
      "restartPolicy": "Never", "nodeSelector": {"a": "b"},
      "containers": [{"name": "w", "image": "i", "unheardOf": true,
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {}}}],
        "resources": {"limits": {"nvidia.com/gpu": 1}}}]}})")),
              IsEmpty());
}

TEST(ValidateTemplate, RefusesOurVariablesWithTheirOwnReason) {
  for (const char* name : {"DISTTRAIN_JOB", "DISTTRAIN_ANYTHING", "RANK",
                           "MASTER_ADDR", "PET_NNODES", "LOCAL_RANK"}) {
    const std::vector<FieldError> errors = ErrorsOf(Container(
        std::string(R"("env": [{"name": ")") + name + R"(", "value": "1"}])"));
    ASSERT_EQ(errors.size(), 1u) << name;
    EXPECT_EQ(errors[0].path,
              "spec.roles[0].template.spec.containers[0].env[0].name");
    EXPECT_EQ(RejectionReason(errors), "ReservedVariable");
  }
  EXPECT_THAT(ErrorsOf(Container(R"("env": [{"name": "MY_RANK"}])")),
              IsEmpty());
}

TEST(ValidateTemplate, RefusesAccessToTheHostUnlessAllowed) {
  const std::string templates[] = {
      R"({"spec": {"hostNetwork": true}})",
      R"({"spec": {"hostPID": true}})",
      R"({"spec": {"hostIPC": true}})",
      R"({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}})",
      Container(R"("securityContext": {"privileged": true})"),
      R"({"spec": {"initContainers": [
           {"name": "i", "securityContext": {"privileged": true}}]}})",
  };
  for (const std::string& pod_template : templates) {
    EXPECT_THAT(Messages(ErrorsOf(pod_template)),
                ElementsAre(HasSubstr("gives access to the host")))
        << pod_template;
    EXPECT_THAT(ErrorsOf(pod_template, {.allow_host_access = true}), IsEmpty());
  }
  EXPECT_THAT(ErrorsOf(R"({"spec": {"hostNetwork": false}})"), IsEmpty());
}

TEST(ValidateTemplate, WantsTheMainContainerToExist) {
  Json manifest =
      With("/spec/roles/0/template",
           Json::parse(R"({"spec": {"containers": [{"name": "worker"}]}})"));
  manifest["spec"]["mainContainer"] = "worker";
  EXPECT_THAT(Messages(ParseAndValidate(manifest).errors), IsEmpty());
  manifest["spec"]["mainContainer"] = "woker";
  EXPECT_THAT(Messages(ParseAndValidate(manifest).errors),
              ElementsAre("spec.mainContainer is \"woker\", must be the name "
                          "of a container of spec.roles[0].template; did you "
                          "mean worker?"));
}

TEST(ValidateTemplate, WantsSomethingToRunWithoutAProgram) {
  Json manifest = SmallManifest();
  manifest["spec"].erase("program");
  manifest["spec"]["roles"].erase(1);
  EXPECT_THAT(Messages(ParseAndValidate(manifest).errors),
              ElementsAre(HasSubstr("spec.program is missing")));
  manifest["spec"]["roles"][0]["template"] =
      Json::parse(Container(R"("command": ["torchrun"])"));
  EXPECT_THAT(Messages(ParseAndValidate(manifest).errors), IsEmpty());
}

}  // namespace
}  // namespace disttrain
