// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "controller/api/field_error.h"
#include "controller/api/job.h"

// What a worker binary says of its programs (`--list-programs`), and whether a
// job fits to it. The worker checks the same again when it starts: this check
// is for finding a mistake before anything runs.
namespace disttrain {

struct ProgramRole {
  std::string name;
  int max_replicas = 0;      // processes; 0: any number
  bool replaceable = false;  // it may have restart: Rank
};

struct ProgramParameter {
  std::string name;
  std::string type;  // boolean | integer | number | string
  std::optional<double> minimum;
  std::optional<double> exclusive_minimum;
  std::optional<double> maximum;
  std::optional<double> exclusive_maximum;
};

struct CatalogEntry {
  std::string name;
  std::string driver;              // the role that runs it
  std::vector<ProgramRole> roles;  // {}: the driver's, and any others
  std::vector<ProgramParameter> parameters;
};

// Errors: INVALID_ARGUMENT if `json` is not {"programs": [{"name", "driver",
// "roles": [{"name", "maxReplicas", "replaceable"}], "parameters": [{"name",
// "type", "minimum", ...}]}]}. Other fields are skipped.
absl::StatusOr<std::vector<CatalogEntry>> ParseCatalog(std::string_view json);

// Runs `worker --list-programs`.
//
// Blocking: until the worker has ended, or `deadline`; then it is killed.
// Errors: NOT_FOUND if there is no such file, else UNAVAILABLE; they name the
// worker, and what it said last.
absl::StatusOr<std::vector<CatalogEntry>> AskWorker(const std::string& worker,
                                                    absl::Time deadline);

// The mistakes in spec.program, the names of roles, and spec.parameters.
std::vector<FieldError> CheckProgram(const JobSpec& spec,
                                     const std::vector<CatalogEntry>& programs);

}  // namespace disttrain
