// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/logs_command.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/api/closest_name.h"
#include "controller/cli/display.h"
#include "controller/cli/log_follower.h"
#include "controller/cli/log_line.h"
#include "controller/cli/run_summary.h"
#include "controller/local/run_directory.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr int kTickMs = 200;
constexpr size_t kLastLines = 20;

// What to show of a run.
struct Filter {
  std::optional<int> rank;
  std::string role;

  bool Takes(const StartedPod& pod) const {
    return (!rank.has_value() || pod.rank == *rank) &&
           (role.empty() || pod.role == role);
  }
};

absl::StatusOr<Filter> FilterFrom(const ParsedFlags& flags) {
  Filter filter{.rank = std::nullopt, .role = flags.Get("role")};
  if (!flags.Has("rank")) return filter;
  const std::string text = flags.Get("rank");
  int rank = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, rank);
  if (parsed.ec != std::errc() || parsed.ptr != end || rank < 0) {
    return absl::InvalidArgumentError(
        fmt::format("--rank {} is not a rank", Printable(text)));
  }
  filter.rank = rank;
  return filter;
}

// `name` is a run's folder, a job, or "" for the last run.
absl::StatusOr<RunInfo> FindRun(const std::vector<RunInfo>& runs,
                                const std::string& name) {
  std::vector<std::string> known;
  for (const RunInfo& run : runs) {
    if (name.empty() || run.name == name || run.job == name) return run;
    known.push_back(run.job);
  }
  if (runs.empty()) {
    return absl::NotFoundError("there are no runs yet; start one with dtj run");
  }
  const std::set<std::string> jobs(known.begin(), known.end());
  return absl::NotFoundError(
      fmt::format("no run of {}{}; there are runs of {}", Printable(name),
                  DidYouMean(name, known), fmt::join(jobs, ", ")));
}

// The last lines of the pod that brought the job down.
void ShowRootCause(const Json& status, const std::vector<StartedPod>& pods,
                   Display& display) {
  const auto outcome = OutcomeOf(status);
  if (!outcome.has_value() || outcome->complete) return;
  const std::string culprit = RootCausePod(status);
  const auto pod =
      std::find_if(pods.begin(), pods.end(),
                   [&](const StartedPod& p) { return p.name == culprit; });
  if (pod == pods.end()) return;
  std::deque<std::string> last;
  LogFollower log;
  log.Add(*pod);
  log.Finish([&](const StartedPod&, std::string_view line) {
    last.push_back(ReadableLogLine(line));
    if (last.size() > kLastLines) last.pop_front();
  });
  display.Line(RootCauseLine(status, *outcome));
  for (const std::string& line : last) display.RankLine(*pod, line);
  display.Line("all lines:");
}

// Adds the pods that are new since the last call.
absl::Status AddPods(const RunInfo& run, const Filter& filter, size_t& known,
                     LogFollower& logs) {
  ASSIGN_OR_RETURN(const auto pods, ReadPods(run));
  for (; known < pods.size(); ++known) {
    if (filter.Takes(pods[known])) logs.Add(pods[known]);
  }
  return absl::OkStatus();
}

bool StillRuns(const std::string& runs, const RunInfo& run) {
  for (const RunInfo& now : ListRuns(runs)) {
    if (now.name == run.name) return now.running;
  }
  return false;
}

absl::Status ShowLogs(const std::string& runs, const RunInfo& run,
                      const Filter& filter, bool follow, Display& display) {
  LogFollower logs;
  size_t known = 0;
  const auto on_line = [&](const StartedPod& pod, std::string_view line) {
    display.RankLine(pod, ReadableLogLine(line));
  };
  while (true) {
    const bool running = follow && StillRuns(runs, run);
    RETURN_IF_ERROR(AddPods(run, filter, known, logs));
    bool more = true;
    while (more && display.Flush()) more = logs.Poll(on_line);
    if (!display.Flush()) return absl::OkStatus();
    if (!running) break;
    poll(nullptr, 0, kTickMs);
  }
  logs.Finish(on_line);
  return absl::OkStatus();
}

absl::Status Show(const ParsedFlags& flags, Display& display) {
  ASSIGN_OR_RETURN(const Filter filter, FilterFrom(flags));
  ASSIGN_OR_RETURN(const std::string runs, RunsFolder(FromEnvironment));
  const std::string name =
      flags.positionals().empty() ? "" : flags.positionals().front();
  ASSIGN_OR_RETURN(const RunInfo run, FindRun(ListRuns(runs), name));
  ASSIGN_OR_RETURN(const auto pods, ReadPods(run));
  if (!flags.Has("rank") && !flags.Has("role")) {
    const Json job = ReadJob(run);
    ShowRootCause(job.value("status", Json::object()), pods, display);
  } else if (!run.running &&
             std::none_of(pods.begin(), pods.end(), [&](const StartedPod& pod) {
               return filter.Takes(pod);
             })) {
    return absl::NotFoundError(
        fmt::format("run {} has no such rank or role", run.name));
  }
  return ShowLogs(runs, run, filter, flags.Has("follow"), display);
}

}  // namespace

const CommandSpec& LogsSpec() {
  static const CommandSpec kSpec{
      .name = "logs",
      .summary = "Show what the ranks of a local run have written",
      .positional = "[JOB|RUN]",
      .max_positionals = 1,
      .flags = {{.name = "rank",
                 .placeholder = "N",
                 .help = "only the rank with this number"},
                {.name = "role",
                 .placeholder = "ROLE",
                 .help = "only the ranks of this role"},
                {.name = "follow",
                 .letter = 'f',
                 .help = "go on until the run has ended"}},
      .examples =
          "  # The last run; if it failed, its root cause first\n"
          "  dtj logs\n\n"
          "  # One rank of the last run of a job\n"
          "  dtj logs cartpole --rank 2",
      .notes =
          "The last 20 runs are kept, under "
          "$XDG_STATE_HOME/disttrain/runs."};
  return kSpec;
}

int LogsCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(LogsSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  DisplayOptions options = DisplayOptionsFor(streams.out, FromEnvironment);
  options.progress = false;
  Display display(streams.out, options);
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the stream
  const absl::Status shown = Show(parsed.flags, display);
  if (!shown.ok()) {
    streams.err << "dtj logs: " << Message(shown) << "\n";
    return absl::IsInvalidArgument(shown) ? kExitUsage : 1;
  }
  return display.Flush() ? 0 : 128 + SIGPIPE;
}

}  // namespace disttrain
