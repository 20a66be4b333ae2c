// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/kube/clock.h"
#include "controller/kube/kube_api.h"

namespace disttrain {

// "namespace/name" of an object.
std::string KeyOf(const Json& object);
// The reverse: {namespace, name}.
std::pair<std::string, std::string> SplitKey(const std::string& key);
// {name, uid} of the owner reference with controller: true, or "" and "".
std::pair<std::string, std::string> ControllerOf(const Json& object);

struct InformerOptions {
  Resource resource = Resource::kPods;
  std::string name_space;      // "": all
  std::string label_selector;  // "": all
  // Drops what nobody needs before an object is kept; null keeps all. It must
  // keep metadata's name, namespace, uid, resourceVersion and ownerReferences.
  std::function<Json(const Json&)> prune;
};

// A cache of one resource, kept by a list and a watch.
//
// Callbacks get an object that changed (or vanished) only to compute a key from
// it; decisions read the cache. After 410 Gone the list is taken again and what
// has vanished meanwhile is reported as deleted. The cache also takes our own
// writes at once (Remember), so that a decision never works on a state from
// before them; for this, resourceVersions are compared as numbers.
//
// Threads: Run by one thread; all else thread-safe. Callbacks come from the
// thread of Run or Relist, without a lock held.
class Informer {
 public:
  using OnChange = std::function<void(const Json& object)>;

  // Borrows `api` and `clock`.
  Informer(KubeApi& api, const Clock& clock, InformerOptions options,
           OnChange on_change);

  // Lists and watches until `stop`; backs off (to 30 s) while that fails.
  void Run(const std::function<bool()>& stop);

  // Brings the cache to the server's state by one list.
  absl::Status Relist();

  // Keeps `object`, the answer to a write of ours, unless the watch has already
  // told something newer.
  void Remember(const Json& object);
  // The object of this uid is gone: the answer to a delete of ours.
  void Forget(const std::string& name_space, const std::string& name,
              const std::string& uid);

  std::optional<Json> Get(const std::string& name_space,
                          const std::string& name) const;
  // Those whose controlling owner has this uid, by name.
  std::vector<Json> OwnedBy(const std::string& owner_uid) const;
  std::vector<Json> All() const;

  // True after the first list.
  bool Synced() const { return synced_; }
  // When the server was last heard: a list, an event, a bookmark, or the end of
  // a stream.
  absl::Time LastHeard() const;

 private:
  using Name = std::pair<std::string, std::string>;
  struct Entry {
    Json object;
    int64_t version = 0;
    std::string owner_uid;
  };

  absl::Status Watch(const std::function<bool()>& stop);
  void OnEvent(const WatchEvent& event);
  void Put(const Name& name, Json object, int64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What was kept; null if nothing.
  Json Take(const Name& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Json Pruned(const Json& object) const;

  KubeApi& api_;
  const Clock& clock_;
  const InformerOptions options_;
  const OnChange on_change_;
  std::atomic<bool> synced_ = false;

  mutable absl::Mutex mu_;
  std::map<Name, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::set<Name>> by_owner_ ABSL_GUARDED_BY(mu_);
  // Everything up to here was told by the list or the watch.
  std::string resource_version_ ABSL_GUARDED_BY(mu_);
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time last_heard_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace disttrain
