// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/api/closest_name.h"
#include "controller/cli/commands.h"
#include "controller/cli/logs_command.h"
#include "controller/cli/run_command.h"
#include "fmt/format.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

const CommandSpec& HelpSpec() {
  static const CommandSpec kSpec{
      .name = "help",
      .summary = "Show what dtj can do, or how a command is used",
      .positional = "[COMMAND]",
      .max_positionals = 1,
      .flags = {},
      .examples = "  dtj help\n  dtj help run"};
  return kSpec;
}

std::string Overview() {
  std::string text =
      "dtj runs distributed training jobs on this machine, from the manifest "
      "that a\ncluster takes.\n\nUsage:\n  dtj COMMAND [flags]\n\nExamples:\n"
      "  dtj run -f manifests/cartpole.yaml\n"
      "  dtj run -f manifests/cartpole.yaml --set parameters.seed=7\n"
      "  dtj validate -f job.yaml\n\nCommands:\n";
  for (const Command& command : Commands()) {
    text += fmt::format("  {:<12}{}\n", command.spec().name,
                        command.spec().summary);
  }
  return text + "\ndtj COMMAND --help says more about a command.\n";
}

const Command* FindCommand(const std::string& name) {
  const std::vector<Command>& commands = Commands();
  const auto found =
      std::find_if(commands.begin(), commands.end(),
                   [&](const Command& c) { return c.spec().name == name; });
  return found == commands.end() ? nullptr : &*found;
}

int UnknownCommand(const std::string& name, Streams& streams) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    names.push_back(command.spec().name);
  }
  streams.err << fmt::format("dtj: unknown {} {}{}\nSee dtj --help\n",
                             name.starts_with('-') ? "flag" : "command",
                             Printable(name), DidYouMean(name, names));
  return kExitUsage;
}

int HelpCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(HelpSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  if (parsed.flags.positionals().empty()) {
    streams.out << Overview();
    return 0;
  }
  const std::string& name = parsed.flags.positionals().front();
  const Command* command = FindCommand(name);
  if (command == nullptr) return UnknownCommand(name, streams);
  streams.out << HelpText(command->spec());
  return 0;
}

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command> kCommands = {
      {RunSpec, RunCommand},           {LogsSpec, LogsCommand},
      {ValidateSpec, ValidateCommand}, {RenderSpec, RenderCommand},
      {VersionSpec, VersionCommand},   {CompletionSpec, CompletionCommand},
      {HelpSpec, HelpCommand},
  };
  return kCommands;
}

int Dispatch(const std::vector<std::string>& args, Streams& streams) {
  if (args.empty()) {
    streams.err << Overview();
    return kExitUsage;
  }
  const std::string& name = args.front();
  if (name == "--help" || name == "-h") {
    streams.out << Overview();
    return 0;
  }
  if (name == "--version") return VersionCommand({}, streams);
  const Command* command = FindCommand(name);
  if (command == nullptr) return UnknownCommand(name, streams);
  return command->run({args.begin() + 1, args.end()}, streams);
}

}  // namespace disttrain
