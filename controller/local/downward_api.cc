// SPDX-License-Identifier: Apache-2.0
#include "controller/local/downward_api.h"

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

// The key in "<prefix>['key']"; absent if `path` is not of that form.
std::optional<std::string> Subscript(const std::string& path,
                                     std::string_view prefix) {
  const std::string open = fmt::format("{}['", prefix);
  if (path.size() < open.size() + 2 ||
      path.compare(0, open.size(), open) != 0 ||
      path.compare(path.size() - 2, 2, "']") != 0) {
    return std::nullopt;
  }
  return path.substr(open.size(), path.size() - open.size() - 2);
}

std::string Entry(const Json& metadata, const char* map,
                  const std::string& key) {
  return metadata.value(map, Json::object()).value(key, "");
}

}  // namespace

absl::StatusOr<std::string> PodField(const Json& pod,
                                     const std::string& field_path) {
  const Json metadata = pod.value("metadata", Json::object());
  if (const auto key = Subscript(field_path, "metadata.labels")) {
    return Entry(metadata, "labels", *key);
  }
  if (const auto key = Subscript(field_path, "metadata.annotations")) {
    return Entry(metadata, "annotations", *key);
  }
  if (field_path == "metadata.name") return metadata.value("name", "");
  if (field_path == "metadata.namespace") {
    return metadata.value("namespace", "");
  }
  if (field_path == "metadata.uid") return metadata.value("uid", "");
  if (field_path == "spec.nodeName") return kLocalNode;
  if (field_path == "spec.serviceAccountName") {
    return pod.value("spec", Json::object())
        .value("serviceAccountName", "default");
  }
  if (field_path == "status.podIP" || field_path == "status.podIPs" ||
      field_path == "status.hostIP" || field_path == "status.hostIPs") {
    return kLocalAddress;
  }
  return absl::InvalidArgumentError(
      fmt::format("fieldPath {} is not one of a pod's", field_path));
}

}  // namespace disttrain
