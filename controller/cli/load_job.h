// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/api/field_error.h"
#include "controller/api/job.h"
#include "controller/cli/streams.h"

namespace disttrain {

// What a command line says about the job: --file, --set, --worker.
struct JobSource {
  std::string path = {};               // "-": standard input
  std::vector<std::string> sets = {};  // "parameters.seed=7", applied in order
  // The binary that is asked which programs it has; "": disttrain-worker
  // beside this one (see DefaultWorker). Not asked without spec.program.
  std::string worker = {};
  // A default worker that does not exist is a warning, not an error.
  bool worker_optional = false;
};

// Everything that was found out about a manifest.
struct LoadedJob {
  std::optional<Job> job;          // set if there are no errors
  std::vector<FieldError> errors;  // path "" for the file itself
  std::vector<std::string> warnings;
  std::string worker;  // the binary that was asked, or would have been
};

// Reads the manifest, applies `sets`, parses and validates it, refuses what
// this version does not act on, and asks the worker about the program.
//
// Blocking: while reading standard input, and up to 60 s for the worker.
LoadedJob LoadManifest(const JobSource& source, Streams& streams);

// LoadManifest for a command that cannot go on without a job: warnings go to
// `err`. Errors: INVALID_ARGUMENT, one line per mistake, to be printed as it
// is; the exit code is 2.
absl::StatusOr<Job> LoadJob(const JobSource& source, Streams& streams);

// disttrain-worker in the folder of the running binary.
std::string DefaultWorker();

}  // namespace disttrain
