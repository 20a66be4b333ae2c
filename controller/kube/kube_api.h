// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace disttrain {

using Json = nlohmann::json;

// The resources the controller touches; the client knows their paths.
enum class Resource {
  kDistTrainingJobs,
  kPods,
  kServices,
  kSecrets,
  kNetworkPolicies,
  kPersistentVolumeClaims,
  kEvents,
  kLeases,
};

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type = WatchEventType::kAdded;
  Json object;
};

struct DeleteOptions {
  std::string uid;                   // "": no precondition
  std::optional<int> grace_seconds;  // pods; 0 removes the object at once
  bool background_propagation = true;
};

// A Kubernetes API server, or its in-memory twin.
//
// Objects are JSON as the API server sends them. Codes: NOT_FOUND (404),
// ALREADY_EXISTS (409 on create), ABORTED (409 conflict: stale resourceVersion
// or uid), OUT_OF_RANGE (410 Gone: list again), INVALID_ARGUMENT (400, 422),
// PERMISSION_DENIED (403), RESOURCE_EXHAUSTED (403 quota, 429), UNAVAILABLE
// (5xx, network), DEADLINE_EXCEEDED.
//
// Threads: all methods are thread-safe.
// Blocking: until the server has answered, 30 s at most; Watch see there.
class KubeApi {
 public:
  virtual ~KubeApi() = default;

  virtual absl::StatusOr<Json> Get(Resource resource,
                                   const std::string& name_space,
                                   const std::string& name) = 0;

  // `name_space` "": all namespaces. `label_selector`: "a=b,c=d" or "".
  virtual absl::StatusOr<ObjectList> List(
      Resource resource, const std::string& name_space,
      const std::string& label_selector) = 0;

  // Calls `on_event` for every change after `resource_version`, on the calling
  // thread, until the stream ends (OK), fails, or `stop` is notified
  // (CANCELLED).
  virtual absl::Status Watch(
      Resource resource, const std::string& name_space,
      const std::string& label_selector, const std::string& resource_version,
      const std::function<void(const WatchEvent&)>& on_event,
      const std::function<bool()>& stop) = 0;

  // `dry_run`: validated and defaulted by the server, not stored.
  virtual absl::StatusOr<Json> Create(Resource resource, const Json& object,
                                      bool dry_run = false) = 0;

  // Server-side apply of what we own, by field manager "disttrain".
  virtual absl::StatusOr<Json> Apply(Resource resource, const Json& object) = 0;

  // Replaces the status; metadata.resourceVersion, if set, is a precondition.
  virtual absl::StatusOr<Json> UpdateStatus(Resource resource,
                                            const Json& object) = 0;

  virtual absl::Status Delete(Resource resource, const std::string& name_space,
                              const std::string& name,
                              const DeleteOptions& options) = 0;
};

}  // namespace disttrain
