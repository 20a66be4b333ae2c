// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

// Field names of Kubernetes 1.34 that a template may use: to recognise typing
// errors, not to refuse what is newer.
namespace disttrain {

const std::vector<std::string>& PodTemplateFields();
const std::vector<std::string>& PodSpecFields();
const std::vector<std::string>& ContainerFields();

}  // namespace disttrain
