// SPDX-License-Identifier: Apache-2.0
#include "controller/api/validate_job.h"

#include <algorithm>
#include <set>

#include "controller/api/closest_name.h"
#include "controller/api/json_reader.h"
#include "controller/api/names.h"
#include "controller/api/pattern.h"
#include "controller/api/validate_template.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using Errors = std::vector<FieldError>;

std::string RolePath(size_t index) { return Join("spec.roles", index); }

std::vector<std::string> RoleNames(const JobSpec& spec, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(spec.roles[i].name);
  return names;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void CheckElastic(const Role& role, const std::string& path, Errors& errors) {
  if (!role.elastic.has_value()) return;
  const Elastic& elastic = *role.elastic;
  if (elastic.min_replicas > role.replicas) {
    errors.push_back(
        MustBe(path + ".elastic.minReplicas", elastic.min_replicas,
               fmt::format("at most {}.replicas ({})", path, role.replicas)));
  }
  if (elastic.max_replicas < role.replicas) {
    errors.push_back(
        MustBe(path + ".elastic.maxReplicas", elastic.max_replicas,
               fmt::format("at least {}.replicas ({})", path, role.replicas)));
  }
}

void CheckRole(const JobSpec& spec, size_t index, Errors& errors) {
  const Role& role = spec.roles[index];
  const std::string path = RolePath(index);
  const std::vector<std::string> earlier = RoleNames(spec, index);
  const auto same = std::find(earlier.begin(), earlier.end(), role.name);
  if (!role.name.empty() && same != earlier.end()) {
    errors.push_back(
        {path + ".name",
         fmt::format("{}.name is \"{}\", the name of {} too; names must be "
                     "unique",
                     path, role.name,
                     RolePath(static_cast<size_t>(same - earlier.begin())))});
  }
  if (!role.start_after.empty() && !Contains(earlier, role.start_after)) {
    FieldError error = MustBe(path + ".startAfter", role.start_after,
                              "the name of an earlier role");
    error.message += DidYouMean(role.start_after, earlier);
    errors.push_back(error);
  }
  if (index == 0 && role.restart == RestartScope::kRank) {
    errors.push_back({path + ".restart",
                      path + ".restart is Rank, must be Gang for the first "
                             "role: its first pod is rank 0, which hosts the "
                             "rendezvous"});
  }
  CheckElastic(role, path, errors);
}

void CheckRoles(const JobSpec& spec, Errors& errors) {
  if (spec.roles.empty()) {
    errors.push_back(
        {"spec.roles", "spec.roles is empty, must have at least 1 role"});
  }
  int pods = 0;
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    CheckRole(spec, i, errors);
    pods += spec.roles[i].replicas;
  }
  if (const int world = WorldSize(spec); world > kMaxWorldSize) {
    errors.push_back(
        {"spec.roles",
         fmt::format("spec.roles make {} processes (replicas times "
                     "processesPerPod, added up), must be at most {}",
                     world, kMaxWorldSize)});
  }
  const std::optional<int>& min_member = spec.scheduling.min_member;
  if (min_member.has_value() && *min_member > pods) {
    errors.push_back(
        MustBe("spec.scheduling.minMember", *min_member,
               fmt::format("at most the number of pods ({})", pods)));
  }
}

void CheckMessagePattern(const FailureRule& rule, const std::string& path,
                         Errors& errors) {
  const std::string field = path + ".messagePattern";
  if (rule.message_pattern.size() > kMaxMessagePattern) {
    errors.push_back(
        {field, fmt::format("{} has {} characters, must have at most {}", field,
                            rule.message_pattern.size(), kMaxMessagePattern)});
  } else if (const absl::Status status = CheckPattern(rule.message_pattern);
             !status.ok()) {
    FieldError error = MustBe(field, rule.message_pattern,
                              "a regular expression (RE2's syntax)");
    error.message += ": " + Message(status);
    errors.push_back(error);
  }
}

void CheckRule(const JobSpec& spec, const FailureRule& rule,
               const std::string& path, Errors& errors) {
  if (rule.exit_codes.empty() && rule.exit_code_ranges.empty() &&
      rule.reasons.empty() && rule.conditions.empty() &&
      rule.message_pattern.empty()) {
    errors.push_back(
        {path, path + " matches nothing: give at least one of exitCodes, "
                      "exitCodeRanges, reasons, conditions, messagePattern"});
  }
  const std::vector<std::string> names = RoleNames(spec, spec.roles.size());
  for (size_t i = 0; i < rule.roles.size(); ++i) {
    if (Contains(names, rule.roles[i])) continue;
    FieldError error = MustBe(Join(path + ".roles", i), rule.roles[i],
                              "the name of a role of this job");
    error.message += DidYouMean(rule.roles[i], names);
    errors.push_back(error);
  }
  const bool any_elastic =
      std::any_of(spec.roles.begin(), spec.roles.end(), [&](const Role& role) {
        return role.elastic.has_value() &&
               (rule.roles.empty() || Contains(rule.roles, role.name));
      });
  if (rule.action == FailureAction::kIgnore && !any_elastic) {
    errors.push_back(
        {path + ".action",
         path + ".action is Ignore, which only elastic roles can take, and no "
                "role that the rule is for is elastic"});
  }
  CheckMessagePattern(rule, path, errors);
}

void CheckFailurePolicy(const JobSpec& spec, Errors& errors) {
  const FailurePolicy& policy = spec.failure_policy;
  if (policy.backoff.max_seconds < policy.backoff.initial_seconds) {
    errors.push_back(MustBe("spec.failurePolicy.backoff.maxSeconds",
                            policy.backoff.max_seconds,
                            fmt::format("at least initialSeconds ({})",
                                        policy.backoff.initial_seconds)));
  }
  std::set<std::string> names;
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const FailureRule& rule = policy.rules[i];
    const std::string path = Join("spec.failurePolicy.rules", i);
    if (!rule.name.empty() && !names.insert(rule.name).second) {
      errors.push_back({path + ".name",
                        fmt::format("{}.name is \"{}\", as an earlier rule's; "
                                    "names must be unique",
                                    path, rule.name)});
    }
    CheckRule(spec, rule, path, errors);
  }
}

void CheckPorts(const JobSpec& spec, Errors& errors) {
  const int rendezvous = spec.rendezvous.port;
  if (rendezvous == env::kDefaultMasterPort) {
    errors.push_back(MustBe("spec.rendezvous.port", rendezvous,
                            "another port: this one is MASTER_PORT, which is "
                            "left to torch's own store"));
  }
  if (spec.reporting.metrics_port == rendezvous ||
      spec.reporting.metrics_port == env::kDefaultMasterPort) {
    errors.push_back(
        MustBe("spec.reporting.metricsPort", spec.reporting.metrics_port,
               fmt::format("neither spec.rendezvous.port ({}) nor MASTER_PORT "
                           "({})",
                           rendezvous, env::kDefaultMasterPort)));
  }
}

void CheckCheckpoint(const JobSpec& spec, Errors& errors) {
  if (!spec.checkpoint.has_value()) return;
  const bool claim = !spec.checkpoint->volume_claim.empty();
  const bool made = !spec.checkpoint->volume_claim_template.is_null();
  if (claim != made) return;
  errors.push_back(
      {"spec.checkpoint",
       fmt::format("spec.checkpoint has {} volumeClaim {} volumeClaimTemplate, "
                   "must have exactly one of them",
                   claim ? "both" : "neither", claim ? "and" : "nor")});
}

void CheckParameters(const JobSpec& spec, Errors& errors) {
  const size_t size =
      spec.parameters
          .dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)
          .size();
  if (size > kMaxParametersSize) {
    errors.push_back(
        {"spec.parameters",
         fmt::format("spec.parameters has {} bytes as JSON, must have at most "
                     "{}",
                     size, kMaxParametersSize)});
  }
}

void CheckLabels(const std::map<std::string, std::string>& labels,
                 Errors& errors) {
  for (const auto& [key, value] : labels) {
    const std::string path = Join("metadata.labels", key);
    if (!IsLabelKey(key)) {
      errors.push_back(
          {path, path + " is not the key of a label ([prefix.domain/]name)"});
    }
    if (!IsLabelValue(value)) {
      errors.push_back(MustBe(path, value,
                              "at most 63 letters, digits, '-', '_', '.', with "
                              "a letter or digit at both ends"));
    }
  }
}

}  // namespace

const std::vector<std::string>& TargetMetrics() {
  static const std::vector<std::string> kNames = {"reward", "episodeReward",
                                                  "loss", "step"};
  return kNames;
}

bool IsDecimal(const std::string& text) {
  if (text.size() > 32) return false;
  std::string_view rest = text;
  if (rest.starts_with('-')) rest.remove_prefix(1);
  const size_t dot = rest.find('.');
  const auto is_digits = [](std::string_view part) {
    return !part.empty() &&
           part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return is_digits(rest.substr(0, dot)) &&
         (dot == std::string_view::npos || is_digits(rest.substr(dot + 1)));
}

std::vector<FieldError> ValidateJob(const Job& job,
                                    const AdmissionOptions& options) {
  Errors errors;
  CheckLabels(job.labels, errors);
  CheckParameters(job.spec, errors);
  CheckRoles(job.spec, errors);
  for (size_t i = 0; i < job.spec.roles.size(); ++i) {
    ValidateTemplate(job.spec, i, options, errors);
  }
  CheckFailurePolicy(job.spec, errors);
  CheckPorts(job.spec, errors);
  CheckCheckpoint(job.spec, errors);
  return errors;
}

}  // namespace disttrain
