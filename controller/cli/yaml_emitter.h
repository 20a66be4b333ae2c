// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/api/job.h"

namespace disttrain {

// `value` as one YAML document in block style, ending in a newline. Reads as
// the same JSON by YAML 1.1 and 1.2: strings that either could take for
// something else are quoted. Keys come sorted.
std::string ToYaml(const Json& value);

// Several documents, with "---" between them.
std::string ToYaml(const std::vector<Json>& documents);

}  // namespace disttrain
