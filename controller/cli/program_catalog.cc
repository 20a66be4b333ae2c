// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/program_catalog.h"

#include <algorithm>

#include "controller/api/closest_name.h"
#include "controller/api/json_reader.h"
#include "controller/cli/capture_output.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using Errors = std::vector<FieldError>;

template <class T>
std::vector<std::string> NamesOf(const std::vector<T>& things) {
  std::vector<std::string> names;
  names.reserve(things.size());
  for (const T& thing : things) names.push_back(thing.name);
  return names;
}

template <class T>
const T* Find(const std::vector<T>& things, const std::string& name) {
  const auto found =
      std::find_if(things.begin(), things.end(),
                   [&](const T& thing) { return thing.name == name; });
  return found == things.end() ? nullptr : &*found;
}

std::string Known(const std::string& name,
                  const std::vector<std::string>& known) {
  return fmt::format(
      "{} (known: {})", DidYouMean(name, known),
      known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

std::optional<double> Limit(const Json& parameter, const char* key) {
  const auto found = parameter.find(key);
  if (found == parameter.end()) return std::nullopt;
  return found->get<double>();
}

ProgramParameter ParameterFrom(const Json& json) {
  return {json.at("name"),        json.at("type"),
          Limit(json, "minimum"), Limit(json, "exclusiveMinimum"),
          Limit(json, "maximum"), Limit(json, "exclusiveMaximum")};
}

CatalogEntry EntryFrom(const Json& json) {
  CatalogEntry program{json.at("name"), json.at("driver"), {}, {}};
  for (const Json& role : json.at("roles")) {
    program.roles.push_back({role.at("name"), role.value("maxReplicas", 0),
                             role.value("replaceable", false)});
  }
  for (const Json& parameter : json.at("parameters")) {
    program.parameters.push_back(ParameterFrom(parameter));
  }
  return program;
}

bool HasType(const Json& value, const std::string& type) {
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  return true;  // a newer worker's: it judges itself
}

bool InRange(const ProgramParameter& p, double value) {
  return !(p.minimum && value < *p.minimum) &&
         !(p.exclusive_minimum && value <= *p.exclusive_minimum) &&
         !(p.maximum && value > *p.maximum) &&
         !(p.exclusive_maximum && value >= *p.exclusive_maximum);
}

std::string Expectation(const ProgramParameter& parameter) {
  std::vector<std::string> limits;
  const auto add = [&](const char* sign, const std::optional<double>& limit) {
    if (limit) limits.push_back(fmt::format(" {} {}", sign, *limit));
  };
  add(">=", parameter.minimum);
  add(">", parameter.exclusive_minimum);
  add("<=", parameter.maximum);
  add("<", parameter.exclusive_maximum);
  return fmt::format("{} {}{}", parameter.type == "integer" ? "an" : "a",
                     parameter.type, fmt::join(limits, " and"));
}

void CheckParameters(const CatalogEntry& program, const Json& parameters,
                     Errors& errors) {
  for (const auto& [name, value] : parameters.items()) {
    const std::string path = Join("spec.parameters", name);
    const ProgramParameter* known = Find(program.parameters, name);
    if (known == nullptr) {
      errors.push_back(
          {path,
           fmt::format("{} is an unknown parameter of {}{}", path, program.name,
                       Known(name, NamesOf(program.parameters)))});
    } else if (!HasType(value, known->type)) {
      errors.push_back({path, fmt::format("{} is {}, must be {}", path,
                                          Shown(value), Expectation(*known))});
    } else if (value.is_number() && !InRange(*known, value.get<double>())) {
      errors.push_back(MustBe(path, value, Expectation(*known)));
    }
  }
}

void CheckRole(const CatalogEntry& program, const JobSpec& spec, size_t index,
               Errors& errors) {
  const Role& role = spec.roles[index];
  const std::string path = Join("spec.roles", index);
  const ProgramRole* known = Find(program.roles, role.name);
  if (known == nullptr) {
    if (program.roles.empty()) return;
    errors.push_back(
        {path + ".name",
         fmt::format("{}.name is \"{}\", no role of {}{}", path, role.name,
                     program.name, Known(role.name, NamesOf(program.roles)))});
    return;
  }
  if (role.restart == RestartScope::kRank && !known->replaceable) {
    errors.push_back(
        {path + ".restart",
         fmt::format("{}.restart is Rank, must be Gang: {} cannot do without a "
                     "rank of role {}",
                     path, program.name, role.name)});
  }
  const int processes =
      role.replicas * ProcessesPerPod(role, spec.main_container);
  if (known->max_replicas > 0 && processes > known->max_replicas) {
    errors.push_back(
        {path + ".replicas",
         fmt::format("{}.replicas make {} processes, must make at most {}: {} "
                     "has only so many of role {}",
                     path, processes, known->max_replicas, program.name,
                     role.name)});
  }
}

void CheckRoles(const CatalogEntry& program, const JobSpec& spec,
                Errors& errors) {
  std::vector<ProgramRole> wanted = program.roles;
  if (wanted.empty()) wanted.push_back({program.driver, 0, false});
  for (const ProgramRole& role : wanted) {
    if (Find(spec.roles, role.name) != nullptr) continue;
    errors.push_back(
        {"spec.roles",
         fmt::format(
             "spec.roles lacks the role {}{}; {} has the roles {}", role.name,
             role.name == program.driver ? " (it runs the program)" : "",
             program.name, fmt::join(NamesOf(wanted), ", "))});
  }
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    CheckRole(program, spec, i, errors);
  }
}

}  // namespace

absl::StatusOr<std::vector<CatalogEntry>> ParseCatalog(std::string_view json) {
  try {
    std::vector<CatalogEntry> programs;
    const Json catalog = Json::parse(json);
    for (const Json& program : catalog.at("programs")) {
      programs.push_back(EntryFrom(program));
    }
    return programs;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("not a list of programs: {}", error.what()));
  }
}

absl::StatusOr<std::vector<CatalogEntry>> AskWorker(const std::string& worker,
                                                    absl::Time deadline) {
  const std::string context = fmt::format("asking {} for its programs", worker);
  absl::StatusOr<std::string> output =
      CaptureOutput({worker, "--list-programs"}, deadline);
  if (!output.ok()) return Annotate(output.status(), context);
  absl::StatusOr<std::vector<CatalogEntry>> programs = ParseCatalog(*output);
  if (programs.ok()) return programs;
  return absl::UnavailableError(
      fmt::format("{}: {}", context, Message(programs.status())));
}

std::vector<FieldError> CheckProgram(
    const JobSpec& spec, const std::vector<CatalogEntry>& programs) {
  if (spec.program.empty()) return {};
  Errors errors;
  const CatalogEntry* program = Find(programs, spec.program);
  if (program == nullptr) {
    errors.push_back(
        {"spec.program",
         fmt::format("spec.program is \"{}\", no program of this worker{}",
                     spec.program, Known(spec.program, NamesOf(programs)))});
    return errors;
  }
  CheckRoles(*program, spec, errors);
  CheckParameters(*program, spec.parameters, errors);
  return errors;
}

}  // namespace disttrain
