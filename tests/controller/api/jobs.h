// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/api/field_error.h"
#include "controller/api/job.h"

// Jobs for the tests of controller/api.
namespace disttrain {

// The smallest valid job of two roles, as a manifest.
inline Json SmallManifest() {
  return Json::parse(R"({
    "apiVersion": "disttrain.dev/v1alpha1",
    "kind": "DistTrainingJob",
    "metadata": {"name": "cartpole"},
    "spec": {
      "program": "reinforce",
      "roles": [{"name": "agent"}, {"name": "observer", "replicas": 2}]
    }
  })");
}

// SmallManifest with the field at a JSON pointer replaced.
inline Json With(const std::string& pointer, const Json& value) {
  Json manifest = SmallManifest();
  manifest[Json::json_pointer(pointer)] = value;
  return manifest;
}

inline std::vector<std::string> Messages(
    const std::vector<FieldError>& errors) {
  std::vector<std::string> messages;
  messages.reserve(errors.size());
  for (const FieldError& error : errors) messages.push_back(error.message);
  return messages;
}

}  // namespace disttrain
