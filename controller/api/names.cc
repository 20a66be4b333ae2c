// SPDX-License-Identifier: Apache-2.0
#include "controller/api/names.h"

#include <algorithm>
#include <array>

#include "proto/contract/env.h"

namespace disttrain {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlphanumeric(char c) {
  return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z');
}

constexpr std::array<std::string_view, 20> kTorchrunVariables = {
    env::kRank,
    env::kWorldSize,
    env::kLocalRank,
    env::kLocalWorldSize,
    env::kGroupRank,
    env::kGroupWorldSize,
    env::kRoleName,
    env::kRoleRank,
    env::kRoleWorldSize,
    env::kMasterAddr,
    env::kMasterPort,
    env::kTorchelasticRestartCount,
    env::kTorchelasticMaxRestarts,
    env::kTorchelasticRunId,
    env::kTorchelasticUseAgentStore,
    env::kPetNnodes,
    env::kPetNprocPerNode,
    env::kPetNodeRank,
    env::kPetMasterAddr,
    env::kPetMasterPort,
};

}  // namespace

bool IsRfc1123Label(std::string_view name, size_t max_length) {
  if (name.empty() || name.size() > max_length) return false;
  if (name.front() == '-' || name.back() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return IsLower(c) || IsDigit(c) || c == '-';
  });
}

bool IsRfc1035Label(std::string_view name, size_t max_length) {
  return IsRfc1123Label(name, max_length) && IsLower(name.front());
}

bool IsDnsSubdomain(std::string_view name) {
  if (name.size() > 253) return false;
  while (true) {
    const size_t dot = name.find('.');
    if (!IsRfc1123Label(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash != std::string_view::npos) {
    if (!IsDnsSubdomain(key.substr(0, slash))) return false;
    key.remove_prefix(slash + 1);
  }
  return !key.empty() && IsLabelValue(key);
}

bool IsLabelValue(std::string_view value) {
  if (value.empty()) return true;
  if (value.size() > 63) return false;
  if (!IsAlphanumeric(value.front()) || !IsAlphanumeric(value.back())) {
    return false;
  }
  return std::all_of(value.begin(), value.end(), [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
}

bool IsReservedVariable(std::string_view name) {
  return name.starts_with(env::kPrefix) ||
         std::find(kTorchrunVariables.begin(), kTorchrunVariables.end(),
                   name) != kTorchrunVariables.end();
}

}  // namespace disttrain
