// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/catalogue.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"
#include "proto/contract/env.h"

namespace disttrain {
namespace {

using Json = nlohmann::json;

std::vector<std::string> NamesOf(const std::vector<RoleInfo>& roles) {
  std::vector<std::string> names;
  for (const RoleInfo& role : roles) names.push_back(role.name);
  return names;
}

}  // namespace

absl::StatusOr<const NamedProgram*> FindProgram(
    const std::vector<NamedProgram>& programs, const std::string& name) {
  std::vector<std::string> known;
  for (const NamedProgram& program : programs) {
    if (program.name == name) return &program;
    known.push_back(program.name);
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} is missing; programs of this worker: {}", env::kProgram,
                    fmt::join(known, ", ")));
  }
  return absl::InvalidArgumentError(
      fmt::format("spec.program is \"{}\"{}; programs of this worker: {}", name,
                  DidYouMean(name, known), fmt::join(known, ", ")));
}

absl::Status CheckRoles(const NamedProgram& program,
                        const std::vector<std::string>& roles,
                        const std::set<std::string>& replaceable) {
  std::map<std::string, int64_t> counts;
  for (const std::string& role : roles) ++counts[role];
  std::vector<RoleInfo> wanted = program.info.roles;
  if (wanted.empty()) wanted.push_back({.name = program.info.driver});

  std::vector<std::string> mistakes;
  for (const RoleInfo& role : wanted) {
    const auto found = counts.find(role.name);
    if (found == counts.end()) {
      mistakes.push_back(fmt::format(
          "role {} is missing{}", role.name,
          role.name == program.info.driver ? " (it runs the program)" : ""));
    } else if (role.max_replicas > 0 && found->second > role.max_replicas) {
      mistakes.push_back(
          fmt::format("role {} has {} ranks, must have at most {}", role.name,
                      found->second, role.max_replicas));
    }
    if (!role.replaceable && replaceable.count(role.name) > 0) {
      mistakes.push_back(fmt::format(
          "role {} has restart: Rank, but none of its ranks can be replaced",
          role.name));
    }
  }
  const std::vector<std::string> names = NamesOf(program.info.roles);
  for (const auto& [role, count] : counts) {
    if (names.empty() || std::count(names.begin(), names.end(), role) > 0)
      continue;
    mistakes.push_back(
        fmt::format("role {} is not known{}", role, DidYouMean(role, names)));
  }
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "spec.roles: {}; program {} has the roles {}", fmt::join(mistakes, "; "),
      program.name, fmt::join(NamesOf(wanted), ", ")));
}

int DriverRank(const NamedProgram& program,
               const std::vector<std::string>& roles) {
  const auto found = std::find(roles.begin(), roles.end(), program.info.driver);
  return static_cast<int>(found - roles.begin());
}

Json ListPrograms(const std::vector<NamedProgram>& programs) {
  Json list = Json::array();
  for (const NamedProgram& program : programs) {
    Json roles = Json::array();
    for (const RoleInfo& role : program.info.roles) {
      Json item = {{"name", role.name},
                   {"meaning", role.meaning},
                   {"replaceable", role.replaceable}};
      if (role.max_replicas > 0) item["maxReplicas"] = role.max_replicas;
      roles.push_back(std::move(item));
    }
    list.push_back({{"name", program.name},
                    {"meaning", program.info.meaning},
                    {"driver", program.info.driver},
                    {"roles", std::move(roles)},
                    {"parameters", ToJson(program.info.parameters)}});
  }
  return {{"programs", std::move(list)}};
}

}  // namespace disttrain
