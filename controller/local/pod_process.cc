// SPDX-License-Identifier: Apache-2.0
#include "controller/local/pod_process.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "controller/local/downward_api.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using Environment = std::map<std::string, std::string>;

std::pair<std::string, std::string> Split(const std::string& entry) {
  const size_t equals = entry.find('=');
  if (equals == std::string::npos) return {entry, ""};
  return {entry.substr(0, equals), entry.substr(equals + 1)};
}

std::string Expand(const std::string& text, const Environment& env) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "$$") == 0) {
      out += '$';
      i += 2;
      continue;
    }
    const size_t end =
        text.compare(i, 2, "$(") == 0 ? text.find(')', i) : std::string::npos;
    if (end == std::string::npos) {
      out += text[i++];
      continue;
    }
    const auto found = env.find(text.substr(i + 2, end - i - 2));
    out += found != env.end() ? found->second : text.substr(i, end + 1 - i);
    i = end + 1;
  }
  return out;
}

absl::Status NotHere(const std::string& what) {
  return absl::InvalidArgumentError(
      fmt::format("{} cannot be done by a local run", what));
}

// The value of one entry of a container's env; absent: optional and not there.
absl::StatusOr<std::optional<std::string>> Value(const Json& entry,
                                                 const std::string& name,
                                                 const Json& pod,
                                                 const Environment& env) {
  if (!entry.contains("valueFrom")) {
    return Expand(entry.value("value", ""), env);
  }
  const Json& source = entry.at("valueFrom");
  if (source.contains("fieldRef")) {
    ASSIGN_OR_RETURN(std::string value,
                     PodField(pod, source.at("fieldRef").at("fieldPath")));
    return value;
  }
  for (const Json& reference : source) {
    if (reference.is_object() && reference.value("optional", false)) {
      return std::nullopt;
    }
  }
  return NotHere(fmt::format("env {}: valueFrom.{}", name,
                             source.empty() ? "" : source.begin().key()));
}

absl::StatusOr<Environment> ContainerEnvironment(const Json& container,
                                                 const Json& pod) {
  Environment env;
  for (const Json& source : container.value("envFrom", Json::array())) {
    for (const Json& reference : source) {
      if (reference.is_object() && !reference.value("optional", false)) {
        return NotHere("envFrom");
      }
    }
  }
  for (const Json& entry : container.value("env", Json::array())) {
    const std::string name = entry.at("name");
    ASSIGN_OR_RETURN(const auto value, Value(entry, name, pod, env));
    if (value.has_value()) env[name] = *value;
  }
  return env;
}

std::vector<std::string> VolumeWarnings(const Json& spec) {
  std::vector<std::string> warnings;
  for (const Json& volume : spec.value("volumes", Json::array())) {
    if (volume.contains("emptyDir")) continue;
    warnings.push_back(fmt::format("volume {} is not mounted in a local run",
                                   volume.value("name", "")));
  }
  return warnings;
}

absl::StatusOr<std::vector<std::string>> CommandLine(const Json& container,
                                                     const Environment& env) {
  if (container.value("command", Json::array()).empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "container {} has no command, and a local run cannot start an image's "
        "own entry point; give it a command",
        container.value("name", "")));
  }
  std::vector<std::string> argv;
  for (const char* field : {"command", "args"}) {
    const std::vector<std::string> words =
        container.value(field, Json::array());
    for (const std::string& word : words) argv.push_back(Expand(word, env));
  }
  return argv;
}

absl::StatusOr<PodProcess> ProcessOrThrow(const Json& pod,
                                          const HostContext& context) {
  const Json& spec = pod.at("spec");
  if (!spec.value("initContainers", Json::array()).empty()) {
    return NotHere("initContainers");
  }
  const Json& containers = spec.at("containers");
  if (containers.size() != 1) {
    return NotHere(fmt::format("a pod of {} containers", containers.size()));
  }
  const Json& container = containers.at(0);
  ASSIGN_OR_RETURN(Environment env, ContainerEnvironment(container, pod));
  PodProcess process;
  ASSIGN_OR_RETURN(process.start.argv, CommandLine(container, env));
  env[env::kTerminationMessagePath] = context.termination_message_path;
  for (const std::string& entry : context.env) env.insert(Split(entry));
  for (const auto& [name, value] : env) {
    process.start.env.push_back(fmt::format("{}={}", name, value));
  }
  process.start.id = pod.at("metadata").at("uid");
  process.start.directory = container.value("workingDir", "");
  process.start.log_path = context.log_path;
  process.warnings = VolumeWarnings(spec);
  return process;
}

}  // namespace

absl::StatusOr<PodProcess> ProcessFor(const Json& pod,
                                      const HostContext& context) {
  try {
    return ProcessOrThrow(pod, context);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("the pod is malformed: {}", error.what()));
  }
}

std::vector<std::string> HostEnvironment(const char* const* environment) {
  static constexpr std::array kNames = {
      "PATH",         "HOME",         "USER",         "LOGNAME",
      "SHELL",        "LANG",         "LANGUAGE",     "TERM",
      "COLORTERM",    "TZ",           "TMPDIR",       "LD_LIBRARY_PATH",
      "LD_PRELOAD",   "PYTHONPATH",   "PYTHONHOME",   "VIRTUAL_ENV",
      "CONDA_PREFIX", "HTTP_PROXY",   "HTTPS_PROXY",  "NO_PROXY",
      "http_proxy",   "https_proxy",  "no_proxy",     "SSL_CERT_FILE",
      "SSL_CERT_DIR", "NO_COLOR",     "ASAN_OPTIONS", "LSAN_OPTIONS",
      "TSAN_OPTIONS", "UBSAN_OPTIONS"};
  static constexpr std::array kPrefixes = {"LC_",  "CUDA_", "NVIDIA_", "NCCL_",
                                           "OMP_", "MKL_",  "TORCH_"};
  std::vector<std::string> kept;
  for (; *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    const std::string name = Split(entry).first;
    const bool named =
        std::find(kNames.begin(), kNames.end(), name) != kNames.end();
    const bool prefixed = std::any_of(
        kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
          return name.compare(0, prefix.size(), prefix) == 0;
        });
    if (named || prefixed) kept.push_back(entry);
  }
  return kept;
}

std::string ExpandReferences(const std::string& text,
                             const std::vector<std::string>& env) {
  Environment values;
  for (const std::string& entry : env) {
    auto [name, value] = Split(entry);
    values[std::move(name)] = std::move(value);
  }
  return Expand(text, values);
}

}  // namespace disttrain
