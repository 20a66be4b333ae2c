// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/commands.h"
#include "controller/cli/load_job.h"
#include "fmt/format.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

Json ResultJson(const LoadedJob& loaded) {
  Json errors = Json::array();
  for (const FieldError& error : loaded.errors) {
    errors.push_back({{"path", error.path},
                      {"message", error.message},
                      {"reason", error.reason}});
  }
  Json result = {{"valid", loaded.job.has_value()},
                 {"errors", std::move(errors)},
                 {"warnings", loaded.warnings}};
  if (loaded.job.has_value()) {
    result["job"] = loaded.job->name;
    result["worldSize"] = WorldSize(loaded.job->spec);
  }
  return result;
}

std::string Plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void PrintText(const LoadedJob& loaded, Streams& streams) {
  for (const std::string& warning : loaded.warnings) {
    streams.err << "warning: " << Printable(warning) << '\n';
  }
  for (const FieldError& error : loaded.errors) {
    streams.err << Printable(error.message) << '\n';
  }
  if (!loaded.errors.empty()) {
    streams.err << Plural(loaded.errors.size(), "mistake") << '\n';
    return;
  }
  const JobSpec& spec = loaded.job->spec;
  const auto processes = static_cast<size_t>(WorldSize(spec));
  streams.out << fmt::format(
      "job {} is valid: {} in {}{}\n", loaded.job->name,
      processes == 1 ? "1 process" : fmt::format("{} processes", processes),
      Plural(spec.roles.size(), "role"),
      spec.program.empty() ? "" : ", program " + spec.program);
}

}  // namespace

const CommandSpec& ValidateSpec() {
  static const CommandSpec kSpec = [] {
    CommandSpec spec{
        .name = "validate",
        .summary = "Check a job's manifest without running it",
        .flags = ManifestFlags(),
        .examples =
            "  # All mistakes of a manifest, each with its line and field\n"
            "  dtj validate -f job.yaml\n\n"
            "  # For a worker of your own, and for a script\n"
            "  dtj validate -f job.yaml --worker build/my-worker -o json",
        .notes = "Exit code: 0 valid, 2 not valid."};
    spec.flags.push_back({.name = "output",
                          .letter = 'o',
                          .placeholder = "FORMAT",
                          .help = "text (default) or json",
                          .choices = {"text", "json"}});
    return spec;
  }();
  return kSpec;
}

int ValidateCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(ValidateSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  const ParsedFlags& flags = parsed.flags;
  const LoadedJob loaded = LoadManifest({.path = flags.Get("file"),
                                         .sets = flags.All("set"),
                                         .worker = flags.Get("worker"),
                                         .worker_optional = true},
                                        streams);
  if (flags.Get("output") == "json") {
    streams.out << ResultJson(loaded).dump(2, ' ', false,
                                           Json::error_handler_t::replace)
                << '\n';
  } else {
    PrintText(loaded, streams);
  }
  return loaded.job.has_value() ? 0 : kExitUsage;
}

}  // namespace disttrain
