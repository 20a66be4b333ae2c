// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/commands.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/contract/labels.h"

namespace disttrain {

const CommandSpec& VersionSpec() {
  static const CommandSpec kSpec{
      .name = "version",
      .summary = "Print the version of dtj and of the resource it reads",
      .flags = {{.name = "output",
                 .letter = 'o',
                 .placeholder = "FORMAT",
                 .help = "text (default) or json",
                 .choices = {"text", "json"}}},
      .examples = "  dtj version\n  dtj version -o json"};
  return kSpec;
}

int VersionCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(VersionSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  if (parsed.flags.Get("output") == "json") {
    const nlohmann::json version = {{"version", DISTTRAIN_VERSION},
                                    {"apiVersion", kApiVersion}};
    streams.out << version.dump(2) << '\n';
  } else {
    streams.out << fmt::format("dtj {} ({})\n", DISTTRAIN_VERSION, kApiVersion);
  }
  return 0;
}

}  // namespace disttrain
