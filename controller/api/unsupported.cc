// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "controller/api/validate_job.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

// A use of the resource that is understood and not acted on.
struct Unsupported {
  std::string path;
  std::string value;  // "" if the field's presence is what counts
  bool used;
};

std::vector<Unsupported> RoleUses(const JobSpec& spec, size_t index) {
  const Role& role = spec.roles[index];
  const std::string path = Join("spec.roles", index);
  const int processes = ProcessesPerPod(role, spec.main_container);
  return {
      {path + ".elastic", "", role.elastic.has_value()},
      {path + ".processesPerPod",
       role.processes_per_pod.has_value()
           ? fmt::format("{}", processes)
           : fmt::format("{}, from the limit of nvidia.com/gpu", processes),
       processes > 1},
  };
}

std::vector<Unsupported> SpecUses(const JobSpec& spec) {
  const std::string& gang = spec.scheduling.gang;
  return {
      {"spec.suspend", "true", spec.suspend},
      {"spec.managedBy", spec.managed_by,
       spec.managed_by != "disttrain.dev/controller"},
      {"spec.failurePolicy.method", "InPlace",
       spec.failure_policy.method == "InPlace"},
      {"spec.scheduling.gang", gang, gang != "Auto" && gang != "None"},
      {"spec.scheduling.topology", "", !spec.scheduling.topology.is_null()},
      {"spec.network.collectives", "Encrypted",
       spec.network.collectives_encrypted},
      {"spec.checkpoint", "", spec.checkpoint.has_value()},
      {"spec.reporting.tensorboard", "true", spec.reporting.tensorboard},
  };
}

}  // namespace

std::vector<FieldError> UnsupportedFields(const JobSpec& spec) {
  std::vector<Unsupported> uses;
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    for (Unsupported& use : RoleUses(spec, i)) uses.push_back(std::move(use));
  }
  for (Unsupported& use : SpecUses(spec)) uses.push_back(std::move(use));
  std::vector<FieldError> errors;
  for (const Unsupported& use : uses) {
    if (!use.used) continue;
    const std::string what =
        use.value.empty() ? "" : fmt::format(" is {}, which", use.value);
    errors.push_back(
        {use.path,
         fmt::format("{}{} is not supported yet; leave it out", use.path, what),
         kNotSupported});
  }
  return errors;
}

absl::Status RefuseUnsupported(const JobSpec& spec) {
  return ToStatus(UnsupportedFields(spec));
}

}  // namespace disttrain
