// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "controller/kube/clock.h"
#include "controller/kube/kube_api.h"

namespace disttrain {

struct MemoryApiOptions {
  // Changes kept for watchers; a watch that starts before them gets
  // OUT_OF_RANGE and lists again.
  size_t history = 10'000;
  // First four groups of every uid; a local run makes its own, so that no two
  // runs have a uid in common.
  std::string uid_prefix = "00000000-0000-4000-8000-";
};

// A Kubernetes API server in memory: what `dtj run` and the tests use instead
// of a cluster.
//
// It keeps what the reconcile code relies on: one resourceVersion counter for
// all objects, uid, creationTimestamp, generation (moves with spec only), 409
// on a stale resourceVersion, the status subresource, label selectors, watches
// from a resourceVersion with bookmarks and 410, dry run, and deletion in the
// background of children whose owner's uid is gone. Two owners of one child
// keep it until both are gone.
//
// Pods end as with a kubelet: Delete with a grace > 0 sets deletionTimestamp
// and deletionGracePeriodSeconds and leaves the object; whoever plays the
// kubelet ends the process and deletes again with grace 0. A pod that was
// never bound to a node (spec.nodeName "") or that has finished vanishes at
// once, as in Kubernetes. All other objects vanish at once.
//
// Threads: thread-safe; watchers are called without a lock held.
// Blocking: only Watch.
class MemoryApi : public KubeApi {
 public:
  // Borrows `clock`.
  explicit MemoryApi(const Clock& clock, MemoryApiOptions options = {});

  absl::StatusOr<Json> Get(Resource resource, const std::string& name_space,
                           const std::string& name) override;
  absl::StatusOr<ObjectList> List(Resource resource,
                                  const std::string& name_space,
                                  const std::string& label_selector) override;
  absl::Status Watch(Resource resource, const std::string& name_space,
                     const std::string& label_selector,
                     const std::string& resource_version,
                     const std::function<void(const WatchEvent&)>& on_event,
                     const std::function<bool()>& stop) override;
  // A new object's status is dropped if its resource has a status of its own
  // (jobs); a pod starts with phase Pending.
  absl::StatusOr<Json> Create(Resource resource, const Json& object,
                              bool dry_run = false) override;
  absl::StatusOr<Json> Apply(Resource resource, const Json& object) override;
  absl::StatusOr<Json> UpdateStatus(Resource resource,
                                    const Json& object) override;
  absl::Status Delete(Resource resource, const std::string& name_space,
                      const std::string& name,
                      const DeleteOptions& options) override;

  // What `kubectl patch --type=merge` does (RFC 7386): spec, labels,
  // annotations. Status and identity are not touched; resourceVersion, if the
  // patch has one, is a precondition.
  absl::StatusOr<Json> Patch(Resource resource, const std::string& name_space,
                             const std::string& name, const Json& patch);

  // What the scheduler does: sets spec.nodeName and PodScheduled=True.
  absl::StatusOr<Json> Bind(const std::string& name_space,
                            const std::string& pod, const std::string& node);

  // Ends all watches that run now (they return OK), as a server does that is
  // rolled. Tests use it together with Compact.
  void CloseWatches();
  // Forgets all history: a watch from an older resourceVersion gets 410.
  void Compact();

 private:
  using Key = std::tuple<Resource, std::string, std::string>;
  struct Change {
    int64_t version = 0;
    Resource resource = Resource::kPods;
    WatchEventType type = WatchEventType::kAdded;
    Json object;
  };

  // Takes the next version, stores `object` under it and tells the watchers.
  const Json& Store(const Key& key, Json object, WatchEventType type)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remove(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Record(Resource resource, WatchEventType type, Json object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Deletes children, and theirs, of an owner that is gone.
  void CollectChildren(const std::string& owner_uid)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Deletes as a person would: with the object's own grace.
  void DeleteLocked(const Key& key, const DeleteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Json WithIdentity(Resource resource, Json object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  const MemoryApiOptions options_;

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_uid_ ABSL_GUARDED_BY(mu_) = 1;
  // A watch from before this version has missed something.
  int64_t compacted_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t watch_generation_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Key, Json> objects_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> uids_ ABSL_GUARDED_BY(mu_);
  // By the uid of an owner.
  std::map<std::string, std::set<Key>> children_ ABSL_GUARDED_BY(mu_);
  std::deque<Change> history_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
