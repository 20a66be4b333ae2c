// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace disttrain {

// What a worker binary was asked to do. Everything about the job itself comes
// from the environment.
enum class Command { kRun, kListPrograms, kHelp, kVersion };

// Errors: INVALID_ARGUMENT naming the word that was not understood.
absl::StatusOr<Command> ParseCommandLine(const std::vector<std::string>& words);

// The text of --help.
std::string HelpText(const std::string& binary);

}  // namespace disttrain
