// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "worker/programs/program.h"

namespace disttrain {

// The main function of a worker binary:
//
//   int main(int argc, char** argv) {
//     return disttrain::Main(argc, argv, {{"mine", Mine, {.driver =
//     "leader"}}});
//   }
//
// Runs one rank of a job as the environment says (proto/contract/env.h), or
// answers --list-programs, --help, --version. Call it first thing in main,
// before any thread exists. Returns the exit code (proto/contract/exit_code.h);
// after a failure it does not return but ends the process.
int Main(int argc, char** argv, const std::vector<NamedProgram>& programs);

}  // namespace disttrain
