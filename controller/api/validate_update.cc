// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/api/json_reader.h"
#include "controller/api/validate_job.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

bool SameNames(const std::vector<Role>& before,
               const std::vector<Role>& after) {
  return std::equal(
      before.begin(), before.end(), after.begin(), after.end(),
      [](const Role& a, const Role& b) { return a.name == b.name; });
}

}  // namespace

std::vector<FieldError> ValidateUpdate(const JobSpec& before,
                                       const JobSpec& after) {
  std::vector<FieldError> errors;
  if (before.managed_by != after.managed_by) {
    errors.push_back(MustBe(
        "spec.managedBy", after.managed_by,
        fmt::format("\"{}\" as before: it cannot change", before.managed_by)));
  }
  if (before.suspend || after.suspend) return errors;
  if (before.scheduling.queue != after.scheduling.queue) {
    errors.push_back(
        MustBe("spec.scheduling.queue", after.scheduling.queue,
               fmt::format("\"{}\" as before, unless the job is suspended",
                           before.scheduling.queue)));
  }
  if (!SameNames(before.roles, after.roles)) {
    errors.push_back({"spec.roles",
                      "spec.roles has other names or another order than "
                      "before, which only a suspended job may get"});
    return errors;
  }
  for (size_t i = 0; i < after.roles.size(); ++i) {
    const int was = before.roles[i].replicas;
    if (after.roles[i].replicas == was || after.roles[i].elastic.has_value()) {
      continue;
    }
    errors.push_back(MustBe(
        Join("spec.roles", i) + ".replicas", after.roles[i].replicas,
        fmt::format("{} as before, unless the role is elastic or the job "
                    "suspended",
                    was)));
  }
  return errors;
}

}  // namespace disttrain
