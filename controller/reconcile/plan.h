// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "controller/api/job.h"
#include "controller/api/pod_view.h"
#include "controller/kube/events.h"
#include "controller/reconcile/job_status.h"
#include "disttrain/v1/progress.pb.h"

namespace disttrain {

struct CreatePod {
  size_t role = 0;  // position in spec.roles
  int index = 0;
  int attempt = 0;
  int incarnation = 0;
  bool operator==(const CreatePod&) const = default;
};
struct DeletePod {
  std::string name;
  std::string uid;
  bool operator==(const DeletePod&) const = default;
};
// Makes the Service, or lets it follow the attempt.
struct EnsureService {
  int attempt = 0;
  bool operator==(const EnsureService&) const = default;
};
struct DeleteService {
  bool operator==(const DeleteService&) const = default;
};
// Asks rank 0 to end the training, with a checkpoint; bounded and best effort,
// since the deletion of the pods follows and says the same by SIGTERM.
struct StopTraining {
  int attempt = 0;
  std::string reason;
  bool operator==(const StopTraining&) const = default;
};
// Its time to live after the end is over.
struct DeleteJob {
  bool operator==(const DeleteJob&) const = default;
};
using Action = std::variant<CreatePod, DeletePod, EnsureService, DeleteService,
                            StopTraining, DeleteJob>;

// Why the job may not run, as the condition Accepted=False says it.
struct Rejection {
  std::string reason;
  std::string message;
};

// The last poll of rank 0.
struct ProgressReport {
  v1::Progress progress;
  int attempt = 0;
  absl::Time time;
};

// Everything but the job itself that a decision depends on.
struct Observed {
  std::vector<PodView> pods;  // whose controlling owner is this job
  // The attempt that the Service selects; nullopt: there is no Service.
  std::optional<int> service_attempt;
  std::optional<ProgressReport> report;
  // Without a source of progress a job runs when its pods do.
  bool has_progress_source = false;
  std::optional<Rejection> rejection;
  std::string template_hash;
  Json resolved = Json::object();  // status.resolved
  // By pod uid: since when its container cannot be made.
  std::map<std::string, absl::Time> config_error_since;
  // What the last action of this job met; OK after a success.
  absl::Status last_error;
  absl::Duration node_lost_grace = absl::Seconds(60);
};

struct Decision {
  // To be written, if it differs, before any action is carried out.
  JobStatus status;
  std::vector<Action> actions;
  // To be recorded once the status is written.
  std::vector<EventText> events;
  // Look again at this time even if nothing happens.
  absl::Time requeue_at = absl::InfiniteFuture();
  // Our copy of the job is older than its pods: do nothing, wait for the watch.
  bool stale = false;
  // Rank 0 can be asked how far it is.
  bool poll = false;
  std::string reason;  // for the log line
};

// What to do now so that `job` moves towards its spec. Pure; carrying a
// decision out twice does no harm.
Decision Plan(const Job& job, const Observed& observed, absl::Time now);

}  // namespace disttrain
