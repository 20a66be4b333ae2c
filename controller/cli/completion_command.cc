// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/cli/commands.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace disttrain {
namespace {

bool TakesFile(const FlagSpec& flag) { return flag.placeholder == "FILE"; }
bool TakesFolder(const FlagSpec& flag) { return flag.placeholder == "DIR"; }

std::vector<FlagSpec> FlagsOf(const CommandSpec& command) {
  std::vector<FlagSpec> flags = command.flags;
  flags.push_back(HelpFlag());
  return flags;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    names.push_back(command.spec().name);
  }
  return names;
}

// What comes after a command's name, if it is one of a few words.
std::vector<std::string> PositionalWords(const CommandSpec& command) {
  if (command.name == "help") return CommandNames();
  if (command.name == "completion") return {"bash", "zsh", "fish"};
  return {};
}

// Alternatives of a shell's case: "--file|-f".
std::string CasePattern(const FlagSpec& flag) {
  return flag.letter == '\0' ? "--" + flag.name
                             : fmt::format("--{}|-{}", flag.name, flag.letter);
}

std::string BashCase(const CommandSpec& command) {
  std::string values;
  std::vector<std::string> words = PositionalWords(command);
  for (const FlagSpec& flag : FlagsOf(command)) {
    words.push_back("--" + flag.name);
    if (flag.placeholder.empty()) continue;
    const std::string action =
        !flag.choices.empty()
            ? fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))",
                          fmt::join(flag.choices, " "))
        : TakesFile(flag)   ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
        : TakesFolder(flag) ? "COMPREPLY=($(compgen -d -- \"$cur\"))"
                            : "COMPREPLY=()";
    values +=
        fmt::format("        {}) {}; return;;\n", CasePattern(flag), action);
  }
  std::string text = fmt::format("    {})\n", command.name);
  if (!values.empty()) {
    text += "      case \"$prev\" in\n" + values + "      esac\n";
  }
  return text + fmt::format("      words=\"{}\";;\n", fmt::join(words, " "));
}

std::string Bash() {
  std::string text =
      "# bash completion for dtj: source <(dtj completion bash)\n"
      "_dtj() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
      "  local prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local words=\"\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n";
  text += fmt::format(
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$cur\"))\n"
      "    return\n  fi\n  case \"${{COMP_WORDS[1]}}\" in\n",
      fmt::join(CommandNames(), " "));
  for (const Command& command : Commands()) text += BashCase(command.spec());
  return text +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -o filenames -F _dtj dtj\n";
}

// For single quotes, and without what _arguments takes for its own.
std::string ZshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshFlag(const FlagSpec& flag, const std::string& name) {
  std::string value;
  if (!flag.placeholder.empty()) {
    const std::string action =
        !flag.choices.empty()
            ? fmt::format("({})", fmt::join(flag.choices, " "))
        : TakesFile(flag)   ? "_files"
        : TakesFolder(flag) ? "_files -/"
                            : " ";
    value = fmt::format(":{}:{}", flag.placeholder, action);
  }
  return fmt::format(" \\\n        '{}{}[{}]{}'", flag.repeatable ? "*" : "",
                     name, ZshText(flag.help), value);
}

std::string ZshCase(const CommandSpec& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.name);
  for (const FlagSpec& flag : FlagsOf(command)) {
    text += ZshFlag(flag, "--" + flag.name);
    if (flag.letter != '\0') {
      text += ZshFlag(flag, std::string("-") + flag.letter);
    }
  }
  const std::vector<std::string> words = PositionalWords(command);
  if (!words.empty()) {
    text += fmt::format(" \\\n        '1:word:({})'", fmt::join(words, " "));
  }
  return text + ";;\n";
}

std::string Zsh() {
  std::string text =
      "#compdef dtj\n"
      "# zsh completion for dtj: source <(dtj completion zsh)\n"
      "_dtj() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const Command& command : Commands()) {
    text += fmt::format("    '{}:{}'\n", command.spec().name,
                        ZshText(command.spec().summary));
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=${words[2]}\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const Command& command : Commands()) text += ZshCase(command.spec());
  return text +
         "  esac\n"
         "}\n"
         "compdef _dtj dtj\n";
}

std::string FishText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string FishLines(const CommandSpec& command) {
  std::string text =
      fmt::format("complete -c dtj -n __fish_use_subcommand -a {} -d '{}'\n",
                  command.name, FishText(command.summary));
  const std::string when = fmt::format(
      "complete -c dtj -n '__fish_seen_subcommand_from {}'", command.name);
  for (const FlagSpec& flag : FlagsOf(command)) {
    text += fmt::format("{} -l {}", when, flag.name);
    if (flag.letter != '\0') text += fmt::format(" -s {}", flag.letter);
    if (!flag.placeholder.empty()) text += " -r";
    if (TakesFile(flag) || TakesFolder(flag)) text += " -F";
    if (!flag.choices.empty()) {
      text += fmt::format(" -a '{}'", fmt::join(flag.choices, " "));
    }
    text += fmt::format(" -d '{}'\n", FishText(flag.help));
  }
  const std::vector<std::string> words = PositionalWords(command);
  if (!words.empty()) {
    text += fmt::format("{} -a '{}'\n", when, fmt::join(words, " "));
  }
  return text;
}

std::string Fish() {
  std::string text =
      "# fish completion for dtj: dtj completion fish | source\n"
      "complete -c dtj -f\n";
  for (const Command& command : Commands()) text += FishLines(command.spec());
  return text;
}

}  // namespace

const CommandSpec& CompletionSpec() {
  static const CommandSpec kSpec{
      .name = "completion",
      .summary = "Print a script that completes dtj's commands in your shell",
      .positional = "bash|zsh|fish",
      .max_positionals = 1,
      .flags = {},
      .examples =
          "  source <(dtj completion bash)\n"
          "  source <(dtj completion zsh)\n"
          "  dtj completion fish | source"};
  return kSpec;
}

int CompletionCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(CompletionSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  const std::vector<std::string>& shells = parsed.flags.positionals();
  const std::string shell = shells.empty() ? "" : shells.front();
  if (shell == "bash") {
    streams.out << Bash();
  } else if (shell == "zsh") {
    streams.out << Zsh();
  } else if (shell == "fish") {
    streams.out << Fish();
  } else {
    streams.err << "dtj completion: name a shell: bash, zsh or fish\n";
    return kExitUsage;
  }
  return 0;
}

}  // namespace disttrain
