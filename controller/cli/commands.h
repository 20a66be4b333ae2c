// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/cli/flags.h"
#include "controller/cli/streams.h"

// The commands of `dtj`. Each has its table, and a function that takes the
// arguments after its name and returns the exit code. run_command.h and
// logs_command.h declare the two that have a header of their own.
namespace disttrain {

struct Command {
  const CommandSpec& (*spec)();
  int (*run)(const std::vector<std::string>& args, Streams& streams);
};

// All commands, in the order of the help text.
const std::vector<Command>& Commands();

// `args` without the program's name. Returns the exit code.
int Dispatch(const std::vector<std::string>& args, Streams& streams);

const CommandSpec& ValidateSpec();
int ValidateCommand(const std::vector<std::string>& args, Streams& streams);

const CommandSpec& RenderSpec();
int RenderCommand(const std::vector<std::string>& args, Streams& streams);

const CommandSpec& VersionSpec();
int VersionCommand(const std::vector<std::string>& args, Streams& streams);

const CommandSpec& CompletionSpec();
int CompletionCommand(const std::vector<std::string>& args, Streams& streams);

}  // namespace disttrain
