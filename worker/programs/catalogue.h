// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/programs/program.h"

namespace disttrain {

// Errors: INVALID_ARGUMENT, with the programs that there are.
absl::StatusOr<const NamedProgram*> FindProgram(
    const std::vector<NamedProgram>& programs, const std::string& name);

// Whether `roles`, one name per rank, are what the program needs: its driver's,
// all that it names, none that it does not, none more often than it allows, and
// of those with restart: Rank, `replaceable`, none that it cannot do without.
// Errors: INVALID_ARGUMENT, naming all mistakes.
absl::Status CheckRoles(const NamedProgram& program,
                        const std::vector<std::string>& roles,
                        const std::set<std::string>& replaceable = {});

// The first rank of the driver role; `roles` has passed CheckRoles.
int DriverRank(const NamedProgram& program,
               const std::vector<std::string>& roles);

// What --list-programs prints:
//   {"programs": [{"name", "meaning", "driver",
//                  "roles": [{"name", "meaning", "maxReplicas",
//                  "replaceable"}], "parameters": [{"name", "type", "default",
//                  "meaning",
//                                  "minimum", "maximum", ...}]}]}
nlohmann::json ListPrograms(const std::vector<NamedProgram>& programs);

}  // namespace disttrain
