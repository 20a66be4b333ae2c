// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/flags.h"

#include <algorithm>

#include "controller/api/closest_name.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/runtime/status.h"
#include "proto/runtime/utf8.h"

namespace disttrain {

FlagSpec HelpFlag() {
  return {.name = "help", .letter = 'h', .help = "show this text"};
}

std::string ParsedFlags::Get(const std::string& name,
                             const std::string& fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second.back();
}

std::vector<std::string> ParsedFlags::All(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

// Goes through the arguments once, from left to right.
class FlagParser {
 public:
  FlagParser(const CommandSpec& command, const std::vector<std::string>& args)
      : command_(command), args_(args), flags_(command.flags) {
    flags_.push_back(HelpFlag());
  }

  absl::StatusOr<ParsedFlags> Run() {
    while (next_ < args_.size()) {
      const std::string& arg = args_[next_++];
      if (only_positionals_ || arg == "-" || !arg.starts_with('-')) {
        RETURN_IF_ERROR(TakePositional(arg));
      } else if (arg == "--") {
        only_positionals_ = true;
      } else if (arg.starts_with("--")) {
        RETURN_IF_ERROR(TakeLong(arg));
      } else {
        RETURN_IF_ERROR(TakeShort(arg));
      }
    }
    return std::move(parsed_);
  }

 private:
  absl::Status TakePositional(const std::string& arg) {
    if (parsed_.positionals_.size() ==
        static_cast<size_t>(command_.max_positionals)) {
      return absl::InvalidArgumentError(
          fmt::format("unexpected argument \"{}\"", Printable(arg)));
    }
    parsed_.positionals_.push_back(arg);
    return absl::OkStatus();
  }

  absl::Status TakeLong(const std::string& arg) {
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(2, equals - 2);
    for (const FlagSpec& flag : flags_) {
      if (flag.name != name) continue;
      if (equals == std::string::npos) return TakeValue(flag, arg);
      if (flag.placeholder.empty()) {
        return absl::InvalidArgumentError(
            fmt::format("--{} takes no value", flag.name));
      }
      return Store(flag, arg.substr(equals + 1));
    }
    std::vector<std::string> names;
    for (const FlagSpec& flag : flags_) names.push_back(flag.name);
    const std::string closest = ClosestName(name, names);
    return absl::InvalidArgumentError(fmt::format(
        "unknown flag --{}{}", Printable(name),
        closest.empty() ? "" : fmt::format("; did you mean --{}?", closest)));
  }

  // -f FILE or -fFILE.
  absl::Status TakeShort(const std::string& arg) {
    for (const FlagSpec& flag : flags_) {
      if (flag.letter == '\0' || flag.letter != arg[1]) continue;
      if (arg.size() == 2) return TakeValue(flag, arg);
      if (flag.placeholder.empty()) {
        return absl::InvalidArgumentError(
            fmt::format("-{} takes no value", flag.letter));
      }
      return Store(flag, arg.substr(arg[2] == '=' ? 3 : 2));
    }
    return absl::InvalidArgumentError(
        fmt::format("unknown flag {}", Printable(arg)));
  }

  // The value, if the flag takes one, is the next argument.
  absl::Status TakeValue(const FlagSpec& flag, const std::string& arg) {
    if (flag.placeholder.empty()) return Store(flag, "true");
    if (next_ == args_.size()) {
      return absl::InvalidArgumentError(
          fmt::format("{} needs a value: {} {}", arg, arg, flag.placeholder));
    }
    return Store(flag, args_[next_++]);
  }

  absl::Status Store(const FlagSpec& flag, const std::string& value) {
    const std::vector<std::string>& choices = flag.choices;
    if (!choices.empty() &&
        std::find(choices.begin(), choices.end(), value) == choices.end()) {
      return absl::InvalidArgumentError(fmt::format(
          "--{} is \"{}\", must be {}{}", flag.name, Printable(value),
          fmt::join(choices, " or "), DidYouMean(value, choices)));
    }
    std::vector<std::string>& values = parsed_.values_[flag.name];
    if (!values.empty() && !flag.repeatable && !flag.placeholder.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("--{} is given twice", flag.name));
    }
    values.push_back(value);
    return absl::OkStatus();
  }

  const CommandSpec& command_;
  const std::vector<std::string>& args_;
  std::vector<FlagSpec> flags_;
  size_t next_ = 0;
  bool only_positionals_ = false;
  ParsedFlags parsed_;
};

absl::StatusOr<ParsedFlags> ParseFlags(const CommandSpec& command,
                                       const std::vector<std::string>& args) {
  return FlagParser(command, args).Run();
}

std::string HelpText(const CommandSpec& command) {
  std::string text =
      fmt::format("{}.\n\nUsage:\n  dtj {}{}{}{}\n", command.summary,
                  command.name, command.flags.empty() ? "" : " [flags]",
                  command.positional.empty() ? "" : " ", command.positional);
  if (!command.examples.empty()) {
    text += fmt::format("\nExamples:\n{}\n", command.examples);
  }
  text += "\nFlags:\n";
  std::vector<FlagSpec> flags = command.flags;
  flags.push_back(HelpFlag());
  for (const FlagSpec& flag : flags) {
    std::string left =
        flag.letter == '\0' ? "    " : fmt::format("-{}, ", flag.letter);
    left += "--" + flag.name;
    if (!flag.placeholder.empty()) left += " " + flag.placeholder;
    text += fmt::format("  {:<24}  {}{}\n", left, flag.help,
                        flag.repeatable ? " (repeatable)" : "");
  }
  if (!command.notes.empty()) text += fmt::format("\n{}\n", command.notes);
  return text;
}

ParseOutcome ParseOrExplain(const CommandSpec& command,
                            const std::vector<std::string>& args,
                            Streams& streams) {
  absl::StatusOr<ParsedFlags> parsed = ParseFlags(command, args);
  if (!parsed.ok()) {
    streams.err << fmt::format("dtj {}: {}\nSee dtj {} --help\n", command.name,
                               Message(parsed.status()), command.name);
    return {{}, kExitUsage};
  }
  if (parsed->Has("help")) {
    streams.out << HelpText(command);
    return {{}, 0};
  }
  return {std::move(*parsed), std::nullopt};
}

std::vector<FlagSpec> ManifestFlags() {
  return {
      {.name = "file",
       .letter = 'f',
       .placeholder = "FILE",
       .help = "the job's manifest, YAML or JSON; - is standard input"},
      {.name = "set",
       .placeholder = "PATH=VALUE",
       .help = "set a field, e.g. parameters.seed=7, roles[1].replicas=3, "
               "metadata.name=x",
       .repeatable = true},
      {.name = "worker",
       .placeholder = "FILE",
       .help = "your own worker binary (default: disttrain-worker beside dtj)"},
  };
}

}  // namespace disttrain
