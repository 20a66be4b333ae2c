// SPDX-License-Identifier: Apache-2.0
#include "controller/local/process_kubelet.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/time/clock.h"
#include "controller/api/pod_view.h"
#include "controller/local/downward_api.h"
#include "controller/local/json_field.h"
#include "controller/local/pod_process.h"
#include "controller/local/termination_file.h"
#include "fmt/format.h"
#include "proto/contract/exit_code.h"
#include "proto/runtime/signals.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

// What containerd reports for a command that it cannot execute.
constexpr int kStartErrorCode = 128;

const Json& Metadata(const Json& pod) { return pod.at("metadata"); }

std::string Uid(const Json& pod) { return StringField(Metadata(pod), "uid"); }

bool IsFinished(const Json& pod) {
  const PodPhase phase = PodViewFromJson(pod).phase;
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
}

absl::Duration Grace(const Json& pod) {
  const int declared =
      IntField(pod.at("spec"), "terminationGracePeriodSeconds", 30);
  return absl::Seconds(
      IntField(Metadata(pod), "deletionGracePeriodSeconds", declared));
}

bool FallsBackToLogs(const Json& pod) {
  return StringField(pod.at("spec").at("containers").at(0),
                     "terminationMessagePolicy") == "FallbackToLogsOnError";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessKubelet>> ProcessKubelet::Start(
    MemoryApi& api, KubeletOptions options) {
  std::unique_ptr<ProcessKubelet> kubelet(
      new ProcessKubelet(api, std::move(options)));
  ProcessKubelet* self = kubelet.get();
  ASSIGN_OR_RETURN(self->supervisor_,
                   Supervisor::Start(self->options_.supervisor,
                                     [self](const ProcessEvent& event) {
                                       self->Put(event);
                                     }));
  self->work_thread_ = std::thread([self] { self->Work(); });
  self->watch_thread_ = std::thread([self] { self->Watch(); });
  return kubelet;
}

ProcessKubelet::ProcessKubelet(MemoryApi& api, KubeletOptions options)
    : api_(api), options_(std::move(options)) {}

ProcessKubelet::~ProcessKubelet() {
  {
    const absl::MutexLock lock(&mu_);
    stop_watch_ = true;
  }
  if (watch_thread_.joinable()) watch_thread_.join();
  // Its last events are still handled, so that the pods' status is true.
  if (supervisor_ != nullptr) supervisor_->Close();
  {
    const absl::MutexLock lock(&mu_);
    stop_work_ = true;
    put_.SignalAll();
  }
  if (work_thread_.joinable()) work_thread_.join();
}

void ProcessKubelet::Terminate() { Put(TerminateAll{}); }

void ProcessKubelet::Kill() {
  Put(TerminateAll{});
  // Fails if the supervisor is gone: then so are the processes.
  supervisor_->Send(KillAll{}).IgnoreError();
}

bool ProcessKubelet::Idle() const {
  const absl::MutexLock lock(&mu_);
  return running_ == 0 && items_.empty() && !busy_;
}

void ProcessKubelet::Put(Item item) {
  const absl::MutexLock lock(&mu_);
  items_.push_back(std::move(item));
  put_.Signal();
}

void ProcessKubelet::Watch() {
  NameThread("watch-pods");
  const auto stop = [this] {
    const absl::MutexLock lock(&mu_);
    return stop_watch_;
  };
  const auto on_event = [this](const WatchEvent& event) {
    if (event.type == WatchEventType::kDeleted) {
      Put(PodGone{Uid(event.object)});
    } else if (event.type != WatchEventType::kBookmark) {
      Put(PodChanged{event.object});
    }
  };
  while (!stop()) {
    const auto list = api_.List(Resource::kPods, "", "");
    if (!list.ok()) {
      // The API in memory has no passing errors.
      options_.on_warning(
          fmt::format("cannot list pods: {}", Message(list.status())));
      return;
    }
    Put(PodList{list->items});
    // Ends only to be started again: history lost (410), or the server rolled.
    api_.Watch(Resource::kPods, "", "", list->resource_version, on_event, stop)
        .IgnoreError();
  }
}

std::optional<ProcessKubelet::Item> ProcessKubelet::Next(absl::Time deadline) {
  const absl::MutexLock lock(&mu_);
  busy_ = false;
  while (items_.empty() && !stop_work_) {
    if (put_.WaitWithDeadline(&mu_, deadline)) return std::nullopt;
  }
  if (items_.empty()) return std::nullopt;
  Item item = std::move(items_.front());
  items_.pop_front();
  busy_ = true;
  return item;
}

void ProcessKubelet::Work() {
  NameThread("kubelet");
  while (true) {
    const std::optional<Item> item = Next(NextKill());
    if (item.has_value()) {
      std::visit([this](const auto& what) { Handle(what); }, *item);
    } else {
      const absl::MutexLock lock(&mu_);
      if (stop_work_) return;
    }
    KillOverdue();
    CountRunning();
  }
}

absl::Time ProcessKubelet::NextKill() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [uid, entry] : entries_) {
    if (entry.running) next = std::min(next, entry.kill_at);
  }
  return next;
}

void ProcessKubelet::KillOverdue() {
  const absl::Time now = absl::Now();
  for (auto& [uid, entry] : entries_) {
    if (!entry.running || entry.kill_at > now) continue;
    entry.kill_at = absl::InfiniteFuture();
    supervisor_->Send(SignalProcess{uid, SIGKILL}).IgnoreError();
  }
}

void ProcessKubelet::CountRunning() {
  const auto running =
      std::count_if(entries_.begin(), entries_.end(),
                    [](const auto& entry) { return entry.second.running; });
  const absl::MutexLock lock(&mu_);
  running_ = static_cast<size_t>(running);
}

void ProcessKubelet::Handle(const PodList& list) {
  std::set<std::string> listed;
  for (const Json& pod : list.pods) {
    listed.insert(Uid(pod));
    Handle(PodChanged{pod});
  }
  std::vector<std::string> gone;
  for (const auto& [uid, entry] : entries_) {
    if (!listed.contains(uid)) gone.push_back(uid);
  }
  for (const std::string& uid : gone) Handle(PodGone{uid});
}

void ProcessKubelet::Handle(const PodChanged& changed) {
  const Json& pod = changed.pod;
  const std::string uid = Uid(pod);
  const bool being_deleted = Metadata(pod).contains("deletionTimestamp");
  const auto found = entries_.find(uid);
  if (found == entries_.end()) {
    if (being_deleted) return Remove(pod);
    if (IsFinished(pod)) return;
    Entry& entry = entries_[uid];
    entry.pod = pod;
    StartPod(uid, entry);
    return;
  }
  Entry& entry = found->second;
  entry.pod = pod;
  if (!being_deleted) return;
  if (entry.running) {
    StopPod(uid, entry);
  } else {
    Remove(pod);
  }
}

void ProcessKubelet::Handle(const PodGone& gone) {
  const auto found = entries_.find(gone.uid);
  if (found == entries_.end()) return;
  if (!found->second.running) {
    entries_.erase(found);
    return;
  }
  // Deleted by force; the entry stays until its process has ended.
  supervisor_->Send(SignalProcess{gone.uid, SIGKILL}).IgnoreError();
}

void ProcessKubelet::Handle(const TerminateAll&) {
  terminating_ = true;
  for (auto& [uid, entry] : entries_) {
    if (entry.running) StopPod(uid, entry);
  }
}

void ProcessKubelet::Handle(const ProcessEvent& event) {
  const std::string& id = std::visit(
      [](const auto& e) -> const std::string& { return e.id; }, event);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (std::holds_alternative<ProcessStarted>(event)) {
    entry.started = absl::Now();
    WriteStatus(WithRunning(entry.pod, entry.started));
  } else if (const auto* failed = std::get_if<ProcessStartFailed>(&event)) {
    Finish(entry, {.exit_code = kStartErrorCode,
                   .reason = "StartError",
                   .message = failed->reason});
  } else if (const auto* exited = std::get_if<ProcessExited>(&event)) {
    Termination end{.exit_code = exited->exit_code,
                    .signal = exited->signal,
                    .reason = exited->exit_code == 0 ? "Completed" : "Error",
                    .message = ReadTerminationMessage(entry.message_path)};
    if (end.message.empty() && end.exit_code != 0 &&
        FallsBackToLogs(entry.pod)) {
      end.message = TailOfLog(entry.log_path);
    }
    Finish(entry, std::move(end));
  }
}

void ProcessKubelet::StartPod(const std::string& uid, Entry& entry) {
  const PodView view = PodViewFromJson(entry.pod);
  entry.started = absl::Now();
  entry.log_path = fmt::format("{}/{}.log", options_.log_dir, view.name);
  entry.message_path = fmt::format("{}/{}", options_.message_dir, view.name);
  if (terminating_) return;
  // Names are unique in a run: what lies there is another run's.
  unlink(entry.log_path.c_str());
  unlink(entry.message_path.c_str());
  const auto bound = api_.Bind(StringField(Metadata(entry.pod), "namespace"),
                               view.name, kLocalNode);
  if (absl::IsNotFound(bound.status())) return;  // deleted meanwhile
  if (bound.ok()) entry.pod = *bound;
  auto process =
      ProcessFor(entry.pod, {.env = options_.host_env,
                             .log_path = entry.log_path,
                             .termination_message_path = entry.message_path});
  if (!process.ok()) {
    return Finish(entry, {.exit_code = static_cast<int>(ExitCode::kConfig),
                          .reason = "UnsupportedLocally",
                          .message = Message(process.status())});
  }
  for (const std::string& warning : process->warnings) Warn(warning);
  options_.on_start({.name = view.name,
                     .role = view.role,
                     .role_index = view.role_index,
                     .rank = view.rank,
                     .attempt = view.attempt,
                     .incarnation = view.incarnation,
                     .log_path = entry.log_path});
  process->start.id = uid;
  entry.running = true;
  const absl::Status sent = supervisor_->Send(process->start);
  if (!sent.ok()) {
    Finish(entry, {.exit_code = kStartErrorCode,
                   .reason = "StartError",
                   .message = Message(sent)});
  }
}

void ProcessKubelet::StopPod(const std::string& uid, Entry& entry) {
  const absl::Time kill_at =
      absl::Now() + std::min(Grace(entry.pod), options_.max_grace);
  if (entry.stopping) {
    // Deleted again, with a shorter grace.
    if (kill_at < entry.kill_at && Grace(entry.pod) < options_.max_grace) {
      entry.kill_at = kill_at;
    }
    return;
  }
  entry.stopping = true;
  entry.kill_at = kill_at;
  supervisor_->Send(SignalProcess{uid, SIGTERM}).IgnoreError();
}

void ProcessKubelet::Finish(Entry& entry, Termination termination) {
  entry.running = false;
  termination.started = entry.started;
  termination.finished = absl::Now();
  WriteStatus(WithTermination(entry.pod, termination));
  if (Metadata(entry.pod).contains("deletionTimestamp")) Remove(entry.pod);
}

void ProcessKubelet::WriteStatus(const Json& pod) {
  Json object = pod;
  object["metadata"].erase("resourceVersion");  // only we write it
  const auto written = api_.UpdateStatus(Resource::kPods, object);
  if (!written.ok() && !absl::IsNotFound(written.status())) {
    Warn(fmt::format("status of pod {}: {}", StringField(Metadata(pod), "name"),
                     Message(written.status())));
  }
}

void ProcessKubelet::Remove(const Json& pod) {
  const absl::Status deleted =
      api_.Delete(Resource::kPods, StringField(Metadata(pod), "namespace"),
                  StringField(Metadata(pod), "name"),
                  {.uid = Uid(pod), .grace_seconds = 0});
  if (!deleted.ok() && !absl::IsNotFound(deleted)) {
    Warn(fmt::format("deleting pod {}: {}", StringField(Metadata(pod), "name"),
                     Message(deleted)));
  }
}

void ProcessKubelet::Warn(const std::string& text) {
  if (warned_.insert(text).second) options_.on_warning(text);
}

}  // namespace disttrain
