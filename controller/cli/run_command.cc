// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/run_command.h"

#include "controller/cli/load_job.h"
#include "controller/cli/run_session.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain {

const CommandSpec& RunSpec() {
  static const CommandSpec kSpec = [] {
    CommandSpec spec{
        .name = "run",
        .summary = "Run a job on this machine, each rank a process",
        .flags = ManifestFlags(),
        .examples =
            "  dtj run -f manifests/cartpole.yaml\n\n"
            "  # With another seed and four observers\n"
            "  dtj run -f manifests/cartpole.yaml --set parameters.seed=7 "
            "--set 'roles[1].replicas=4'\n\n"
            "  # For a script: the final status, and nothing else, on standard "
            "output\n"
            "  dtj run -f job.yaml -o json > status.json",
        .notes =
            "Logs are kept (see dtj logs). Interrupt once to stop the job, "
            "twice to kill it.\n\n"
            "Exit code: 0 Complete, 1 Failed, 2 bad manifest or command line, "
            "130 interrupted,\n143 terminated."};
    spec.flags.push_back({.name = "output",
                          .letter = 'o',
                          .placeholder = "FORMAT",
                          .help = "text (default), or json: the final status "
                                  "alone on standard output",
                          .choices = {"text", "json"}});
    spec.flags.push_back({.name = "log-dir",
                          .placeholder = "DIR",
                          .help = "put the ranks' logs there"});
    spec.flags.push_back({.name = "quiet",
                          .letter = 'q',
                          .help = "do not show the ranks' output"});
    spec.flags.push_back(
        {.name = "no-progress", .help = "do not show the progress line"});
    return spec;
  }();
  return kSpec;
}

int RunCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(RunSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  const ParsedFlags& flags = parsed.flags;
  const absl::StatusOr<Job> job = LoadJob({.path = flags.Get("file"),
                                           .sets = flags.All("set"),
                                           .worker = flags.Get("worker")},
                                          streams);
  if (!job.ok()) {
    streams.err << Message(job.status()) << "\n";
    return kExitUsage;
  }
  RunSession session(*job,
                     {.worker = flags.Get("worker", DefaultWorker()),
                      .log_dir = flags.Get("log-dir"),
                      .json = flags.Get("output") == "json",
                      .show_output = !flags.Has("quiet"),
                      .show_progress = !flags.Has("no-progress"),
                      .get_env = FromEnvironment},
                     streams);
  const absl::StatusOr<int> exit_code = session.Run();
  if (!exit_code.ok()) {
    streams.err << "dtj run: " << Message(exit_code.status()) << "\n";
    return 1;
  }
  return *exit_code;
}

}  // namespace disttrain
