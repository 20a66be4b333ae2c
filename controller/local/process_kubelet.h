// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/local/memory_api.h"
#include "controller/local/pod_status.h"
#include "controller/local/run_directory.h"
#include "controller/local/supervisor.h"

namespace disttrain {

struct KubeletOptions {
  std::string log_dir;      // gets <pod>.log
  std::string message_dir;  // gets <pod>, the termination messages
  std::vector<std::string> host_env;
  // Caps a pod's terminationGracePeriodSeconds.
  absl::Duration max_grace = absl::Seconds(10);
  SupervisorOptions supervisor;
  // Both are called on the kubelet's threads and must not call back into it.
  std::function<void(const StartedPod&)> on_start = [](const StartedPod&) {};
  std::function<void(const std::string&)> on_warning = [](const std::string&) {
  };
};

// What a scheduler and a kubelet are to a cluster: binds every pod to this
// machine, runs its main container as a process, and keeps its status true.
//
// A deleted pod gets SIGTERM, after its grace SIGKILL, and vanishes once its
// process has gone. A command that cannot be executed ends its pod with reason
// StartError; a pod that needs a cluster with reason UnsupportedLocally and
// exit code 78, so that nobody tries again.
//
// Threads: thread-safe. It has three of its own: `watch-pods`, `kubelet`
// (all decisions), and its supervisor's reader.
class ProcessKubelet {
 public:
  // Borrows `api`. Errors: the supervisor process cannot be made.
  static absl::StatusOr<std::unique_ptr<ProcessKubelet>> Start(
      MemoryApi& api, KubeletOptions options);

  // Kills what still runs. Blocking: see Supervisor::Close.
  ~ProcessKubelet();

  // Begins to end all pods as if they were deleted, and starts no more.
  void Terminate();

  // Ends all processes at once, and starts no more.
  void Kill();

  // True when no process runs and none is about to start or to be reported.
  bool Idle() const;

 private:
  struct PodList {
    std::vector<Json> pods;
  };
  struct PodChanged {
    Json pod;
  };
  struct PodGone {
    std::string uid;
  };
  struct TerminateAll {};
  using Item =
      std::variant<PodList, PodChanged, PodGone, ProcessEvent, TerminateAll>;

  // A pod that this kubelet has seen.
  struct Entry {
    Json pod;
    bool running = false;  // it has a process, or is about to
    bool stopping = false;
    absl::Time started;
    absl::Time kill_at = absl::InfiniteFuture();
    std::string log_path;
    std::string message_path;
  };

  ProcessKubelet(MemoryApi& api, KubeletOptions options);

  void Put(Item item);
  void Watch();
  void Work();
  std::optional<Item> Next(absl::Time deadline);
  void KillOverdue();
  absl::Time NextKill() const;

  void Handle(const PodList& list);
  void Handle(const PodChanged& changed);
  void Handle(const PodGone& gone);
  void Handle(const ProcessEvent& event);
  void Handle(const TerminateAll&);

  void StartPod(const std::string& uid, Entry& entry);
  void StopPod(const std::string& uid, Entry& entry);
  void Finish(Entry& entry, Termination termination);
  void WriteStatus(const Json& pod);
  void Remove(const Json& pod);
  void Warn(const std::string& text);
  void CountRunning();

  MemoryApi& api_;
  const KubeletOptions options_;
  std::unique_ptr<Supervisor> supervisor_;

  // Of the `kubelet` thread alone.
  std::map<std::string, Entry> entries_;  // by uid
  std::set<std::string> warned_;
  bool terminating_ = false;

  mutable absl::Mutex mu_;
  absl::CondVar put_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mu_);
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  size_t running_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_watch_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_work_ ABSL_GUARDED_BY(mu_) = false;

  std::thread watch_thread_;
  std::thread work_thread_;
};

}  // namespace disttrain
