// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/cli/flags.h"
#include "controller/cli/streams.h"

namespace disttrain {

const CommandSpec& LogsSpec();

// Shows what the ranks of a run have written, the root cause's last lines
// first. Exit codes: 0, 1 there is no such run, 2 command line, 141 the reader
// is gone.
int LogsCommand(const std::vector<std::string>& args, Streams& streams);

}  // namespace disttrain
