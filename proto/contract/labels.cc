// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/labels.h"

#include "fmt/format.h"

namespace disttrain {

std::string HostName(std::string_view job, std::string_view role, int index) {
  return fmt::format("{}-{}-{}", job, role, index);
}

std::string PodName(std::string_view job, std::string_view role, int index,
                    int attempt, int incarnation) {
  std::string name = HostName(job, role, index);
  if (attempt > 0) name += fmt::format("-r{}", attempt);
  if (incarnation > 0) name += fmt::format("-i{}", incarnation);
  return name;
}

}  // namespace disttrain
