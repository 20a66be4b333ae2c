// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/cli/streams.h"

// One table per command says everything about its command line: the parser,
// `--help` and the shell completion all read it.
namespace disttrain {

// Exit code of every usage error, and of a bad manifest.
inline constexpr int kExitUsage = 2;

struct FlagSpec {
  std::string name = {};         // "file": --file
  char letter = '\0';            // 'f': -f; '\0': none
  std::string placeholder = {};  // "FILE" in the help text; "": a switch
  std::string help = {};         // one line, for a person
  bool repeatable = false;
  std::vector<std::string> choices = {};  // {}: any value
};

struct CommandSpec {
  std::string name = {};        // "run"
  std::string summary = {};     // one line, no full stop
  std::string positional = {};  // "[JOB]" in the usage line; "": takes none
  int max_positionals = 0;
  std::vector<FlagSpec> flags = {};  // --help/-h comes by itself
  std::string examples = {};         // lines, each indented by two spaces
  std::string notes = {};            // after the flags, e.g. exit codes
};

// --help, -h: what every command has.
FlagSpec HelpFlag();

// What a command line said.
class ParsedFlags {
 public:
  // True if the flag was given at least once.
  bool Has(const std::string& name) const { return values_.contains(name); }

  // The last value given, or `fallback`.
  std::string Get(const std::string& name,
                  const std::string& fallback = "") const;

  // All values given, in order.
  std::vector<std::string> All(const std::string& name) const;

  const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  friend class FlagParser;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positionals_;
};

// Parses the arguments after the command's name. Understood: --name VALUE,
// --name=VALUE, -nVALUE, -n VALUE, and "--", after which nothing is a flag.
// Errors: INVALID_ARGUMENT that names the argument and, for an unknown flag,
// the one that was probably meant.
absl::StatusOr<ParsedFlags> ParseFlags(const CommandSpec& command,
                                       const std::vector<std::string>& args);

// The text of `dtj <command> --help`.
std::string HelpText(const CommandSpec& command);

// What ParseOrExplain found: flags to act on, or an exit code to return.
struct ParseOutcome {
  ParsedFlags flags;
  std::optional<int> exit_code;
};

// ParseFlags for a command that is about to run: answers --help on `out` (exit
// code 0) and a usage error on `err` (exit code 2).
ParseOutcome ParseOrExplain(const CommandSpec& command,
                            const std::vector<std::string>& args,
                            Streams& streams);

// The flags that every command with a manifest has: --file, --set, --worker.
std::vector<FlagSpec> ManifestFlags();

}  // namespace disttrain
