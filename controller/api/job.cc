// SPDX-License-Identifier: Apache-2.0
#include "controller/api/job.h"

#include <charconv>

#include "controller/api/validate_job.h"

namespace disttrain {
namespace {

// A quantity that is a whole number in [1, kMaxProcessesPerPod]; else 0.
int Gpus(const Json& quantity) {
  int64_t gpus = 0;
  if (quantity.is_number_integer()) {
    gpus = quantity.get<int64_t>();
  } else if (quantity.is_string()) {
    const auto& text = quantity.get_ref<const std::string&>();
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, gpus);
    if (result.ec != std::errc() || result.ptr != end) return 0;
  }
  return gpus >= 1 && gpus <= kMaxProcessesPerPod ? static_cast<int>(gpus) : 0;
}

}  // namespace

const Json* MainContainer(const Role& role, const std::string& name) {
  static const Json::json_pointer kContainers("/spec/containers");
  if (!role.pod_template.contains(kContainers)) return nullptr;
  const Json& containers = role.pod_template[kContainers];
  if (!containers.is_array()) return nullptr;
  for (const Json& container : containers) {
    if (!container.is_object()) continue;
    if (name.empty()) return &container;
    const auto own_name = container.find("name");
    if (own_name != container.end() && *own_name == name) return &container;
  }
  return nullptr;
}

int ProcessesPerPod(const Role& role, const std::string& main_container) {
  static const Json::json_pointer kGpuLimit(
      "/resources/limits/nvidia.com~1gpu");
  if (role.processes_per_pod.has_value()) return *role.processes_per_pod;
  const Json* container = MainContainer(role, main_container);
  if (container == nullptr || !container->contains(kGpuLimit)) return 1;
  return std::max(1, Gpus((*container)[kGpuLimit]));
}

int WorldSize(const JobSpec& spec) {
  int size = 0;
  for (const Role& role : spec.roles) {
    size += role.replicas * ProcessesPerPod(role, spec.main_container);
  }
  return size;
}

int FirstRank(const JobSpec& spec, size_t role, int index) {
  int rank = 0;
  for (size_t i = 0; i < role; ++i) {
    rank += spec.roles[i].replicas *
            ProcessesPerPod(spec.roles[i], spec.main_container);
  }
  return rank + index * ProcessesPerPod(spec.roles[role], spec.main_container);
}

}  // namespace disttrain
