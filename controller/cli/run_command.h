// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/cli/flags.h"
#include "controller/cli/streams.h"

namespace disttrain {

const CommandSpec& RunSpec();

// Runs a job on this machine until it is Complete or Failed, or until it is
// interrupted. Exit codes: 0 Complete, 1 Failed, 2 bad manifest or command
// line, 130, 143, 129 interrupted by SIGINT, SIGTERM, SIGHUP, 141 the reader of
// the output is gone. No process of the job is left when it returns.
//
// The program's main must call RunIfSupervisor first.
int RunCommand(const std::vector<std::string>& args, Streams& streams);

}  // namespace disttrain
