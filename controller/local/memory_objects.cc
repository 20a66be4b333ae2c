// SPDX-License-Identifier: Apache-2.0
#include "controller/local/memory_objects.h"

#include <algorithm>

#include "fmt/format.h"

namespace disttrain::memory {
namespace {

const char* KindOf(Resource resource) {
  switch (resource) {
    case Resource::kDistTrainingJobs:
      return "disttrainingjob";
    case Resource::kPods:
      return "pod";
    case Resource::kServices:
      return "service";
    case Resource::kSecrets:
      return "secret";
    case Resource::kNetworkPolicies:
      return "networkpolicy";
    case Resource::kPersistentVolumeClaims:
      return "persistentvolumeclaim";
    case Resource::kEvents:
      return "event";
    case Resource::kLeases:
      return "lease";
  }
  return "object";
}

std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

const Json& Owners(const Json& object) {
  static const Json none = Json::array();
  const Json& metadata = object.at("metadata");
  const auto found = metadata.find("ownerReferences");
  return found != metadata.end() && found->is_array() ? *found : none;
}

}  // namespace

std::string DescribeKey(Resource resource, const std::string& name_space,
                        const std::string& name) {
  return fmt::format("{} {}/{}", KindOf(resource), name_space, name);
}

std::string Uid(const Json& object) {
  return TextAt(object.at("metadata"), "uid");
}

std::string NameSpace(const Json& object) {
  const std::string name = TextAt(object.at("metadata"), "namespace");
  return name.empty() ? "default" : name;
}

std::string Timestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

absl::StatusOr<Selector> ParseSelector(const std::string& text) {
  Selector selector;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(fmt::format(
          "label selector '{}': '{}' is not key=value", text, part));
    }
    selector.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    begin = end + 1;
  }
  return selector;
}

bool Matches(const Json& object, const std::string& name_space,
             const Selector& selector) {
  const Json& metadata = object.at("metadata");
  if (!name_space.empty() && NameSpace(object) != name_space) return false;
  const auto labels = metadata.find("labels");
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    return labels != metadata.end() && labels->is_object() &&
           TextAt(*labels, wanted.first.c_str()) == wanted.second;
  });
}

absl::Status CheckObject(Resource resource, const Json& object) {
  const auto metadata =
      object.is_object() ? object.find("metadata") : object.end();
  if (!object.is_object() || metadata == object.end() ||
      !metadata->is_object()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: metadata must be an object", KindOf(resource)));
  }
  if (TextAt(*metadata, "name").empty() &&
      TextAt(*metadata, "generateName").empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: metadata.name is missing", KindOf(resource)));
  }
  if (resource != Resource::kPods) return absl::OkStatus();
  const auto spec = object.find("spec");
  if (spec == object.end() || !spec->is_object() ||
      !spec->contains("containers") || !(*spec)["containers"].is_array() ||
      (*spec)["containers"].empty()) {
    return absl::InvalidArgumentError(
        "pod: spec.containers must have at least one container");
  }
  return absl::OkStatus();
}

absl::Status CheckPrecondition(const Json* stored, const Json& object,
                               const std::string& what) {
  if (stored == nullptr) return absl::NotFoundError(what + " not found");
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) {
    return absl::OkStatus();
  }
  for (const char* key : {"uid", "resourceVersion"}) {
    const std::string wanted = TextAt(*metadata, key);
    const std::string actual = TextAt(stored->at("metadata"), key);
    if (!wanted.empty() && wanted != actual) {
      return absl::AbortedError(
          fmt::format("{} was changed by someone else: its {} is {}, not {}",
                      what, key, actual, wanted));
    }
  }
  return absl::OkStatus();
}

Json Merged(const Json& stored, const Json& patch) {
  Json merged = stored;
  Json allowed = patch;
  allowed.erase("status");
  allowed.erase("apiVersion");
  allowed.erase("kind");
  const auto metadata = allowed.find("metadata");
  if (metadata != allowed.end() && metadata->is_object()) {
    for (const char* key :
         {"uid", "name", "namespace", "resourceVersion", "generation",
          "creationTimestamp", "deletionTimestamp",
          "deletionGracePeriodSeconds"}) {
      metadata->erase(key);
    }
  }
  merged.merge_patch(allowed);
  return merged;
}

void MoveGeneration(const Json& before, Json& after) {
  const Json spec_before = before.value("spec", Json());
  if (after.value("spec", Json()) == spec_before) return;
  Json& generation = after["metadata"]["generation"];
  generation =
      generation.is_number_integer() ? generation.get<int64_t>() + 1 : 1;
}

int64_t GraceSeconds(const Json& pod, std::optional<int> asked) {
  const Json spec = pod.value("spec", Json::object());
  const Json status = pod.value("status", Json::object());
  const std::string phase = TextAt(status, "phase");
  if (TextAt(spec, "nodeName").empty() || phase == "Succeeded" ||
      phase == "Failed") {
    return 0;
  }
  if (asked) return std::max(*asked, 0);
  const auto grace = spec.find("terminationGracePeriodSeconds");
  return grace != spec.end() && grace->is_number_integer()
             ? std::max<int64_t>(grace->get<int64_t>(), 0)
             : 30;
}

bool EndsWithin(const Json& object, int64_t grace_seconds) {
  const Json& metadata = object.at("metadata");
  const auto grace = metadata.find("deletionGracePeriodSeconds");
  return metadata.contains("deletionTimestamp") && grace != metadata.end() &&
         grace->is_number_integer() && grace->get<int64_t>() <= grace_seconds;
}

std::vector<std::string> OwnerUids(const Json& object) {
  std::vector<std::string> uids;
  for (const Json& owner : Owners(object)) {
    if (owner.is_object()) uids.push_back(TextAt(owner, "uid"));
  }
  return uids;
}

bool IsOrphan(const Json& object, const std::set<std::string>& existing) {
  const std::vector<std::string> owners = OwnerUids(object);
  return !owners.empty() && std::none_of(owners.begin(), owners.end(),
                                         [&existing](const std::string& uid) {
                                           return existing.count(uid) > 0;
                                         });
}

}  // namespace disttrain::memory
