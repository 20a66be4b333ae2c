// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/run_session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "controller/api/job_json.h"
#include "controller/cli/log_line.h"
#include "controller/cli/run_summary.h"
#include "controller/local/downward_api.h"
#include "controller/local/pod_process.h"
#include "controller/reconcile/grpc_progress_source.h"
#include "fmt/format.h"
#include "proto/runtime/signals.h"
#include "proto/runtime/status.h"

extern char** environ;

namespace disttrain {
namespace {

constexpr size_t kKeptRuns = 20;
constexpr absl::Duration kTick = absl::Milliseconds(100);
// So that a person sees it move; nobody counts API writes here.
constexpr int kReportSeconds = 1;
// From an interrupt until the processes are ended without the controller.
constexpr absl::Duration kSuspendPatience = absl::Seconds(15);

Job Localised(Job job) {
  job.spec.reporting.interval_seconds =
      std::min(job.spec.reporting.interval_seconds, kReportSeconds);
  return job;
}

// No two runs have a uid in common, so that their sockets, folders and fences
// never meet.
std::string UniqueUidPrefix() {
  std::random_device random;
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-", random(),
                     random() & 0xffffu, random() & 0xfffu, random() & 0xfffu);
}

bool IsSuspended(const Json& status) {
  return status.value("phase", "") == "Suspended";
}

DisplayOptions DisplayFor(const std::ostream& out, const RunOptions& options) {
  DisplayOptions display = DisplayOptionsFor(out, options.get_env);
  display.progress = options.show_progress;
  return display;
}

}  // namespace

RunSession::RunSession(Job job, RunOptions options, Streams& streams)
    : job_(Localised(std::move(job))),
      options_(std::move(options)),
      streams_(streams),
      begin_(absl::Now()),
      api_(clock_, {.uid_prefix = UniqueUidPrefix()}),
      display_(
          options_.json ? streams.err : streams.out,
          DisplayFor(options_.json ? streams.err : streams.out, options_)) {}

RunSession::~RunSession() = default;

absl::StatusOr<int> RunSession::Run() {
  BlockSignals();
  RETURN_IF_ERROR(Begin());
  {
    const SignalThread signals([this](int signal) { OnSignal(signal); });
    Follow();
    End();
  }
  return Conclude();
}

absl::Status RunSession::Begin() {
  ASSIGN_OR_RETURN(const std::string runs, RunsFolder(options_.get_env));
  ASSIGN_OR_RETURN(Json created,
                   api_.Create(Resource::kDistTrainingJobs, ToJson(job_)));
  ASSIGN_OR_RETURN(
      directory_,
      RunDirectory::Create(runs, job_.name, created.at("metadata").at("uid"),
                           options_.log_dir));
  PruneRuns(runs, kKeptRuns);
  ASSIGN_OR_RETURN(socket_folder_, MakeSocketFolder(options_.get_env));
  ASSIGN_OR_RETURN(kubelet_, ProcessKubelet::Start(api_, OptionsOfKubelet()));
  if (job_.spec.program.empty()) {
    Say("warning: the job has no program: its command runs on this machine, "
        "without its image");
  }
  progress_source_ = std::make_unique<GrpcProgressSource>();
  watch_ = std::make_unique<JobWatch>(api_, std::move(created));
  controller_ = std::make_unique<Controller>(
      api_, clock_, progress_source_.get(), OptionsOfController());
  controller_->Start();
  return absl::OkStatus();
}

ControllerOptions RunSession::OptionsOfController() const {
  ControllerOptions options;
  options.pods.worker_command = {options_.worker};
  options.pods.socket_dir = socket_folder_;
  options.pods.master_address = kLocalAddress;
  options.pods.metrics_port = 0;
  options.workers = 1;
  options.pollers = 1;
  return options;
}

KubeletOptions RunSession::OptionsOfKubelet() {
  KubeletOptions options;
  options.log_dir = directory_->log_dir();
  options.message_dir = directory_->message_dir();
  options.host_env = HostEnvironment(environ);
  options.supervisor.scratch = socket_folder_;
  options.on_start = [this](const StartedPod& pod) {
    const absl::MutexLock lock(&mu_);
    started_.push_back(pod);
  };
  options.on_warning = [this](const std::string& text) {
    Say("warning: " + text);
  };
  return options;
}

void RunSession::Say(const std::string& text) {
  const absl::MutexLock lock(&mu_);
  said_.push_back(text);
}

void RunSession::OnSignal(int signal) {
  int none = 0;
  signal_.compare_exchange_strong(none, signal);
  const int count = ++signals_;
  if (count == 1) {
    Say("stopping the job; interrupt again to kill it");
  } else if (count == 2) {
    kubelet_->Kill();
  } else {
    _exit(128 + signal);  // the supervisor still ends all ranks
  }
}

void RunSession::Follow() {
  absl::Time give_up = absl::InfiniteFuture();
  while (signals_ < 2 && absl::Now() < give_up) {
    const Json status = watch_->Latest().value("status", Json::object());
    if (OutcomeOf(status).has_value()) return;
    const bool interrupted = signals_ > 0 || reader_gone_;
    if (interrupted && IsSuspended(status) && kubelet_->Idle()) return;
    if (interrupted && give_up == absl::InfiniteFuture()) {
      give_up = absl::Now() + kSuspendPatience;
      Suspend();
    }
    Show(/*log_is_complete=*/false);
  }
}

// As a cluster would: ranks get their grace, and the status stays true.
void RunSession::Suspend() {
  const auto patched = api_.Patch(Resource::kDistTrainingJobs, job_.namespace_,
                                  job_.name, {{"spec", {{"suspend", true}}}});
  if (!patched.ok()) Say("warning: " + Message(patched.status()));
}

void RunSession::End() {
  // First, so that it does not start again what is being ended.
  controller_->Stop();
  kubelet_->Terminate();
  while (!kubelet_->Idle()) Show(/*log_is_complete=*/false);
  watch_.reset();
}

void RunSession::Show(bool log_is_complete) {
  std::deque<StartedPod> started;
  std::deque<std::string> said;
  {
    const absl::MutexLock lock(&mu_);
    started.swap(started_);
    said.swap(said_);
  }
  for (const StartedPod& pod : started) {
    logs_.Add(pod);
    const absl::Status added = directory_->AddPod(pod);
    if (!added.ok()) said.push_back("warning: " + Message(added));
  }
  for (const std::string& text : said) display_.Line("dtj: " + text);
  const auto on_line = [this](const StartedPod& pod, std::string_view line) {
    if (options_.show_output) display_.RankLine(pod, ReadableLogLine(line));
  };
  if (log_is_complete) {
    logs_.Finish(on_line);
    return;
  }
  const bool more = logs_.Poll(on_line);
  const JobProgress progress = ProgressOf(watch_->Latest());
  ShowPhase(progress);
  display_.Progress(progress, absl::Now() - begin_);
  if (!display_.Flush()) reader_gone_ = true;
  if (!more) poll(nullptr, 0, static_cast<int>(kTick / absl::Milliseconds(1)));
}

void RunSession::ShowPhase(const JobProgress& progress) {
  const bool restarted = progress.attempt != shown_.attempt;
  if (restarted ||
      (progress.phase != shown_.phase && progress.phase == "Restarting")) {
    display_.Line(fmt::format("{}: {}: {}", progress.job, progress.phase,
                              progress.message));
  }
  shown_ = progress;
}

int RunSession::Conclude() {
  kubelet_.reset();
  Show(/*log_is_complete=*/true);
  const auto job =
      api_.Get(Resource::kDistTrainingJobs, job_.namespace_, job_.name);
  const Json status = job.ok() ? job->value("status", Json::object()) : Json();
  if (job.ok()) {
    const absl::Status written = directory_->WriteJob(*job);
    if (!written.ok()) display_.Line("dtj: warning: " + Message(written));
  }
  const auto outcome = OutcomeOf(status);
  if (outcome.has_value()) {
    display_.Line(
        SummaryLine(job_.name, status, *outcome, absl::Now() - begin_));
  } else {
    display_.Line(fmt::format("{}: stopped after {}", job_.name,
                              ClockText(absl::Now() - begin_)));
  }
  display_.Line("logs: " + directory_->log_dir());
  if (outcome.has_value() && !outcome->complete) {
    display_.Line(RootCauseLine(status, *outcome));
  }
  display_.Wipe();
  if (options_.json) {
    streams_.out << status.dump(2, ' ', false, Json::error_handler_t::replace)
                 << std::endl;
  }
  if (outcome.has_value()) return outcome->complete ? 0 : 1;
  return 128 + (signal_ != 0 ? signal_.load() : SIGPIPE);
}

}  // namespace disttrain
