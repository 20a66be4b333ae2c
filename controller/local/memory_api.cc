// SPDX-License-Identifier: Apache-2.0
#include "controller/local/memory_api.h"

#include <set>
#include <utility>

#include "controller/local/memory_objects.h"
#include "fmt/format.h"

namespace disttrain {

using memory::DescribeKey;

MemoryApi::MemoryApi(const Clock& clock, MemoryApiOptions options)
    : clock_(clock), options_(std::move(options)) {}

absl::StatusOr<Json> MemoryApi::Get(Resource resource,
                                    const std::string& name_space,
                                    const std::string& name) {
  const absl::MutexLock lock(&mu_);
  const auto found = objects_.find(Key(resource, name_space, name));
  if (found == objects_.end()) {
    return absl::NotFoundError(DescribeKey(resource, name_space, name) +
                               " not found");
  }
  return found->second;
}

absl::StatusOr<ObjectList> MemoryApi::List(Resource resource,
                                           const std::string& name_space,
                                           const std::string& label_selector) {
  const auto selector = memory::ParseSelector(label_selector);
  if (!selector.ok()) return selector.status();
  ObjectList list;
  const absl::MutexLock lock(&mu_);
  list.resource_version = std::to_string(version_);
  for (auto it = objects_.lower_bound(Key(resource, name_space, ""));
       it != objects_.end() && std::get<0>(it->first) == resource; ++it) {
    if (memory::Matches(it->second, name_space, *selector)) {
      list.items.push_back(it->second);
    }
  }
  return list;
}

absl::StatusOr<Json> MemoryApi::Create(Resource resource, const Json& object,
                                       bool dry_run) {
  const absl::Status valid = memory::CheckObject(resource, object);
  if (!valid.ok()) return valid;
  const absl::MutexLock lock(&mu_);
  Json created = WithIdentity(resource, object);
  const std::string name = created["metadata"]["name"];
  const Key key(resource, memory::NameSpace(created), name);
  if (objects_.count(key) > 0) {
    return absl::AlreadyExistsError(
        DescribeKey(resource, std::get<1>(key), std::get<2>(key)) +
        " already exists");
  }
  if (dry_run) return created;
  Json stored = Store(key, std::move(created), WatchEventType::kAdded);
  // As the garbage collector would find out a little later.
  if (memory::IsOrphan(stored, uids_)) DeleteLocked(key, {});
  return stored;
}

absl::StatusOr<Json> MemoryApi::Apply(Resource resource, const Json& object) {
  const absl::Status valid = memory::CheckObject(resource, object);
  if (!valid.ok()) return valid;
  const std::string name_space = memory::NameSpace(object);
  const std::string name = object["metadata"]["name"];
  {
    const absl::MutexLock lock(&mu_);
    const Key key(resource, name_space, name);
    const auto found = objects_.find(key);
    if (found != objects_.end()) {
      Json applied = memory::Merged(found->second, object);
      if (applied == found->second) return applied;
      memory::MoveGeneration(found->second, applied);
      return Store(key, std::move(applied), WatchEventType::kModified);
    }
  }
  absl::StatusOr<Json> created = Create(resource, object);
  // Somebody else was faster: now it is there to be merged into.
  if (absl::IsAlreadyExists(created.status())) return Apply(resource, object);
  return created;
}

absl::StatusOr<Json> MemoryApi::UpdateStatus(Resource resource,
                                             const Json& object) {
  const absl::Status valid = memory::CheckObject(resource, object);
  if (!valid.ok()) return valid;
  const absl::MutexLock lock(&mu_);
  const std::string name = object["metadata"]["name"];
  const Key key(resource, memory::NameSpace(object), name);
  const auto found = objects_.find(key);
  const absl::Status fits = memory::CheckPrecondition(
      found == objects_.end() ? nullptr : &found->second, object,
      DescribeKey(resource, std::get<1>(key), std::get<2>(key)));
  if (!fits.ok()) return fits;
  Json updated = found->second;
  updated["status"] = object.value("status", Json::object());
  if (updated == found->second) return updated;
  return Store(key, std::move(updated), WatchEventType::kModified);
}

absl::StatusOr<Json> MemoryApi::Patch(Resource resource,
                                      const std::string& name_space,
                                      const std::string& name,
                                      const Json& patch) {
  if (!patch.is_object()) {
    return absl::InvalidArgumentError("a patch must be a JSON object");
  }
  const absl::MutexLock lock(&mu_);
  const Key key(resource, name_space, name);
  const auto found = objects_.find(key);
  const absl::Status fits = memory::CheckPrecondition(
      found == objects_.end() ? nullptr : &found->second, patch,
      DescribeKey(resource, name_space, name));
  if (!fits.ok()) return fits;
  Json patched = memory::Merged(found->second, patch);
  if (patched == found->second) return patched;
  memory::MoveGeneration(found->second, patched);
  return Store(key, std::move(patched), WatchEventType::kModified);
}

absl::StatusOr<Json> MemoryApi::Bind(const std::string& name_space,
                                     const std::string& pod,
                                     const std::string& node) {
  const absl::MutexLock lock(&mu_);
  const Key key(Resource::kPods, name_space, pod);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return absl::NotFoundError(DescribeKey(Resource::kPods, name_space, pod) +
                               " not found");
  }
  Json bound = found->second;
  if (!bound["spec"].value("nodeName", "").empty()) {
    return absl::AbortedError(fmt::format("pod {} is already bound to node {}",
                                          pod,
                                          bound["spec"].value("nodeName", "")));
  }
  bound["spec"]["nodeName"] = node;
  bound["status"]["conditions"].push_back(
      {{"type", "PodScheduled"}, {"status", "True"}});
  return Store(key, std::move(bound), WatchEventType::kModified);
}

absl::Status MemoryApi::Delete(Resource resource, const std::string& name_space,
                               const std::string& name,
                               const DeleteOptions& options) {
  const absl::MutexLock lock(&mu_);
  const Key key(resource, name_space, name);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return absl::NotFoundError(DescribeKey(resource, name_space, name) +
                               " not found");
  }
  if (!options.uid.empty() && options.uid != memory::Uid(found->second)) {
    return absl::AbortedError(fmt::format(
        "{} has uid {}, not {}", DescribeKey(resource, name_space, name),
        memory::Uid(found->second), options.uid));
  }
  DeleteLocked(key, options);
  return absl::OkStatus();
}

void MemoryApi::DeleteLocked(const Key& key, const DeleteOptions& options) {
  const Json& object = objects_.at(key);
  const int64_t grace =
      std::get<0>(key) == Resource::kPods
          ? memory::GraceSeconds(object, options.grace_seconds)
          : 0;
  if (grace == 0) {
    Remove(key);
    return;
  }
  if (memory::EndsWithin(object, grace)) return;
  Json deleted = object;
  deleted["metadata"]["deletionTimestamp"] =
      memory::Timestamp(clock_.Now() + absl::Seconds(grace));
  deleted["metadata"]["deletionGracePeriodSeconds"] = grace;
  Store(key, std::move(deleted), WatchEventType::kModified);
}

const Json& MemoryApi::Store(const Key& key, Json object, WatchEventType type) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Json& stored = objects_[key] = std::move(object);
  uids_.insert(memory::Uid(stored));
  for (const std::string& owner : memory::OwnerUids(stored)) {
    children_[owner].insert(key);
  }
  Record(std::get<0>(key), type, stored);
  return stored;
}

void MemoryApi::Remove(const Key& key) {
  Json object = std::move(objects_.at(key));
  objects_.erase(key);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  const std::string uid = memory::Uid(object);
  uids_.erase(uid);
  for (const std::string& owner : memory::OwnerUids(object)) {
    const auto siblings = children_.find(owner);
    if (siblings == children_.end()) continue;
    siblings->second.erase(key);
    if (siblings->second.empty()) children_.erase(siblings);
  }
  Record(std::get<0>(key), WatchEventType::kDeleted, std::move(object));
  CollectChildren(uid);
}

void MemoryApi::Record(Resource resource, WatchEventType type, Json object) {
  history_.push_back({version_, resource, type, std::move(object)});
  while (history_.size() > options_.history) {
    compacted_ = history_.front().version;
    history_.pop_front();
  }
  changed_.SignalAll();
}

void MemoryApi::CollectChildren(const std::string& owner_uid) {
  const auto found = children_.find(owner_uid);
  if (found == children_.end()) return;
  const std::set<Key> children = std::move(found->second);
  children_.erase(found);
  for (const Key& key : children) {
    const auto child = objects_.find(key);
    if (child != objects_.end() && memory::IsOrphan(child->second, uids_)) {
      DeleteLocked(key, {});
    }
  }
}

Json MemoryApi::WithIdentity(Resource resource, Json object) {
  Json& metadata = object["metadata"];
  if (!metadata.contains("name")) {
    metadata["name"] =
        fmt::format("{}{:05}", metadata.value("generateName", ""), next_uid_);
  }
  metadata["namespace"] = memory::NameSpace(object);
  metadata["uid"] = fmt::format("{}{:012}", options_.uid_prefix, next_uid_++);
  metadata["creationTimestamp"] = memory::Timestamp(clock_.Now());
  metadata.erase("deletionTimestamp");
  metadata.erase("deletionGracePeriodSeconds");
  if (object.contains("spec")) metadata["generation"] = 1;
  if (resource == Resource::kPods) object["status"] = {{"phase", "Pending"}};
  if (resource == Resource::kDistTrainingJobs) object.erase("status");
  return object;
}

}  // namespace disttrain
