// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/informer.h"

#include <algorithm>
#include <charconv>

namespace disttrain {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(200);
constexpr absl::Duration kMaxBackoff = absl::Seconds(30);
// How often a waiting Run asks whether it shall stop.
constexpr absl::Duration kStopPoll = absl::Milliseconds(20);

std::string Text(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

const Json& Metadata(const Json& object) {
  static const Json none = Json::object();
  if (!object.is_object()) return none;
  const auto found = object.find("metadata");
  return found == object.end() ? none : *found;
}

// Kubernetes promises since 1.35 that versions of one resource compare as
// numbers, and it has always been so. 0: no number.
int64_t VersionOf(const std::string& text) {
  int64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

std::string KeyOf(const Json& object) {
  return Text(Metadata(object), "namespace") + "/" +
         Text(Metadata(object), "name");
}

std::pair<std::string, std::string> SplitKey(const std::string& key) {
  const size_t slash = key.find('/');
  if (slash == std::string::npos) return {"", key};
  return {key.substr(0, slash), key.substr(slash + 1)};
}

std::pair<std::string, std::string> ControllerOf(const Json& object) {
  const auto found = Metadata(object).find("ownerReferences");
  if (found == Metadata(object).end()) return {};
  for (const Json& owner : *found) {
    if (!owner.is_object()) continue;
    const auto controller = owner.find("controller");
    if (controller != owner.end() && *controller == Json(true)) {
      return {Text(owner, "name"), Text(owner, "uid")};
    }
  }
  return {};
}

Informer::Informer(KubeApi& api, const Clock& clock, InformerOptions options,
                   OnChange on_change)
    : api_(api),
      clock_(clock),
      options_(std::move(options)),
      on_change_(std::move(on_change)) {}

void Informer::Run(const std::function<bool()>& stop) {
  absl::Duration backoff = kFirstBackoff;
  bool listed = false;
  while (!stop()) {
    const absl::Time begun = clock_.Now();
    absl::Status status = absl::OkStatus();
    if (!listed) {
      status = Relist();
      listed = status.ok();
    }
    if (listed) status = Watch(stop);
    if (absl::IsOutOfRange(status)) listed = false;
    // A stream that lived for a while was good; one that ends at once is an
    // error, whatever its status.
    if (clock_.Now() - begun > kMaxBackoff) backoff = kFirstBackoff;
    const absl::Time until = absl::Now() + backoff;
    while (!stop() && absl::Now() < until) {
      absl::SleepFor(std::min(kStopPoll, until - absl::Now()));
    }
    backoff = std::min(backoff * 2, kMaxBackoff);
  }
}

absl::Status Informer::Relist() {
  const absl::StatusOr<ObjectList> list = api_.List(
      options_.resource, options_.name_space, options_.label_selector);
  if (!list.ok()) return list.status();
  std::vector<Json> changed;
  {
    const absl::MutexLock lock(&mu_);
    resource_version_ = list->resource_version;
    version_ = std::max(version_, VersionOf(list->resource_version));
    last_heard_ = clock_.Now();
    std::set<Name> listed;
    for (const Json& object : list->items) {
      const Name name = SplitKey(KeyOf(object));
      const int64_t version =
          VersionOf(Text(Metadata(object), "resourceVersion"));
      listed.insert(name);
      const auto known = entries_.find(name);
      if (known != entries_.end() && known->second.version >= version) continue;
      Put(name, Pruned(object), version);
      changed.push_back(entries_.at(name).object);
    }
    std::vector<Name> vanished;
    for (const auto& [name, entry] : entries_) {
      // What we wrote after the server took the list is not in it.
      if (listed.count(name) == 0 && entry.version <= version_) {
        vanished.push_back(name);
      }
    }
    for (const Name& name : vanished) changed.push_back(Take(name));
  }
  synced_ = true;
  for (const Json& object : changed) on_change_(object);
  return absl::OkStatus();
}

absl::Status Informer::Watch(const std::function<bool()>& stop) {
  std::string from;
  {
    const absl::MutexLock lock(&mu_);
    from = resource_version_;
    last_heard_ = clock_.Now();
  }
  absl::Status status = api_.Watch(
      options_.resource, options_.name_space, options_.label_selector, from,
      [this](const WatchEvent& event) { OnEvent(event); }, stop);
  const absl::MutexLock lock(&mu_);
  if (status.ok()) last_heard_ = clock_.Now();
  return status;
}

void Informer::OnEvent(const WatchEvent& event) {
  const std::string text = Text(Metadata(event.object), "resourceVersion");
  const int64_t version = VersionOf(text);
  Json changed;
  {
    const absl::MutexLock lock(&mu_);
    resource_version_ = text;
    version_ = std::max(version_, version);
    last_heard_ = clock_.Now();
    if (event.type == WatchEventType::kBookmark) return;
    const Name name = SplitKey(KeyOf(event.object));
    const auto known = entries_.find(name);
    // Older than what a write of ours has told: its event is still to come.
    if (known != entries_.end() && known->second.version > version) return;
    if (event.type == WatchEventType::kDeleted) {
      Take(name);
      changed = Pruned(event.object);
    } else {
      Put(name, Pruned(event.object), version);
      changed = entries_.at(name).object;
    }
  }
  on_change_(changed);
}

void Informer::Remember(const Json& object) {
  const int64_t version = VersionOf(Text(Metadata(object), "resourceVersion"));
  const Name name = SplitKey(KeyOf(object));
  {
    const absl::MutexLock lock(&mu_);
    // Told already, perhaps together with its end.
    if (version <= version_) return;
    const auto known = entries_.find(name);
    if (known != entries_.end() && known->second.version >= version) return;
    Put(name, Pruned(object), version);
  }
}

void Informer::Forget(const std::string& name_space, const std::string& name,
                      const std::string& uid) {
  const absl::MutexLock lock(&mu_);
  const auto known = entries_.find({name_space, name});
  if (known != entries_.end() &&
      Text(Metadata(known->second.object), "uid") == uid) {
    Take({name_space, name});
  }
}

std::optional<Json> Informer::Get(const std::string& name_space,
                                  const std::string& name) const {
  const absl::MutexLock lock(&mu_);
  const auto found = entries_.find({name_space, name});
  if (found == entries_.end()) return std::nullopt;
  return found->second.object;
}

std::vector<Json> Informer::OwnedBy(const std::string& owner_uid) const {
  const absl::MutexLock lock(&mu_);
  std::vector<Json> objects;
  const auto found = by_owner_.find(owner_uid);
  if (found == by_owner_.end()) return objects;
  for (const Name& name : found->second) {
    objects.push_back(entries_.at(name).object);
  }
  return objects;
}

std::vector<Json> Informer::All() const {
  const absl::MutexLock lock(&mu_);
  std::vector<Json> objects;
  for (const auto& [name, entry] : entries_) objects.push_back(entry.object);
  return objects;
}

absl::Time Informer::LastHeard() const {
  const absl::MutexLock lock(&mu_);
  return last_heard_;
}

void Informer::Put(const Name& name, Json object, int64_t version) {
  Take(name);
  const std::string owner = ControllerOf(object).second;
  if (!owner.empty()) by_owner_[owner].insert(name);
  entries_[name] = {std::move(object), version, owner};
}

Json Informer::Take(const Name& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  Entry entry = std::move(found->second);
  entries_.erase(found);
  const auto siblings = by_owner_.find(entry.owner_uid);
  if (siblings != by_owner_.end()) {
    siblings->second.erase(name);
    if (siblings->second.empty()) by_owner_.erase(siblings);
  }
  return std::move(entry.object);
}

Json Informer::Pruned(const Json& object) const {
  return options_.prune ? options_.prune(object) : object;
}

}  // namespace disttrain
