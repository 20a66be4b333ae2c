// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/command_line.h"

#include "fmt/format.h"
#include "worker/programs/parameters.h"

namespace disttrain {

absl::StatusOr<Command> ParseCommandLine(
    const std::vector<std::string>& words) {
  if (words.empty()) return Command::kRun;
  const std::string& word = words[0];
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\": at most one option is expected", words[1]));
  }
  if (word == "--list-programs") return Command::kListPrograms;
  if (word == "--help" || word == "-h") return Command::kHelp;
  if (word == "--version") return Command::kVersion;
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is no option{} (see --help)", word,
      DidYouMean(word, {"--list-programs", "--help", "--version"})));
}

std::string HelpText(const std::string& binary) {
  return fmt::format(R"(Usage: {0} [--list-programs | --help | --version]

Runs one rank of a disttrain job. It is started by the controller, or by
`dtj run`, and learns who it is from its environment.

  --list-programs  prints its programs as JSON: roles, parameters with type,
                   default, limits and meaning
  --version        prints the version

Needed in the environment: RANK, WORLD_SIZE, DISTTRAIN_RENDEZVOUS (host:port or
unix:/path), DISTTRAIN_PROGRAM, DISTTRAIN_ROLE. Often: DISTTRAIN_PARAMETERS (one
JSON object), DISTTRAIN_JOB_UID, DISTTRAIN_METRICS_PORT. torchrun's names work.

Exit codes: 0 done; 1 the program threw; 64 command line; 65 input data;
70 a bug; 75 a peer was lost, or told to stop; 78 environment or parameters.

Examples:
  {0} --list-programs
  dtj run -f job.yaml --worker $(command -v {0})
)",
                     binary);
}

}  // namespace disttrain
