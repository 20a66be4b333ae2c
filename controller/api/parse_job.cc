// SPDX-License-Identifier: Apache-2.0
#include "controller/api/parse_job.h"

#include <algorithm>

#include "controller/api/json_reader.h"
#include "controller/api/names.h"
#include "controller/api/parse_spec.h"
#include "controller/api/validate_job.h"
#include "fmt/format.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

void ReadName(ObjectReader& reader, std::string& target) {
  const Json* name = reader.Find("name");
  if (name == nullptr) {
    if (reader.Find("generateName") == nullptr) {
      reader.Require("name");
    } else {
      reader.Add({"metadata.name",
                  "metadata.name is missing; generateName alone works only "
                  "with kubectl create"});
    }
    return;
  }
  if (name->is_string() && name->get<std::string>().size() > kMaxJobName) {
    reader.Add(
        MustBe("metadata.name", *name,
               fmt::format("at most {} characters (it has {})", kMaxJobName,
                           name->get<std::string>().size())));
    return;
  }
  reader.Read("name", target,
              {[](const std::string& text) { return IsRfc1035Label(text); },
               "lower-case letters, digits and '-', beginning with a letter "
               "and not ending in '-'"});
}

void ReadMetadata(ObjectReader& reader, Job& job) {
  ReadName(reader, job.name);
  reader.Read("namespace", job.namespace_,
              {[](const std::string& text) { return IsRfc1123Label(text); },
               "a lower-case label of at most 63 characters"});
  reader.Read("uid", job.uid);
  reader.Read("generation", job.generation,
              {0, std::numeric_limits<int64_t>::max()});
  reader.Read("resourceVersion", job.resource_version);
  reader.Read("creationTimestamp", job.creation_timestamp);
  reader.Read("labels", job.labels);
  reader.Read("annotations", job.annotations);
  job.being_deleted = reader.Find("deletionTimestamp") != nullptr;
  // The API server's own, of no concern here.
  for (const char* field :
       {"generateName", "deletionGracePeriodSeconds", "finalizers",
        "ownerReferences", "managedFields", "selfLink"}) {
    reader.Ignore(field);
  }
}

void ReadRoles(ObjectReader& reader, std::vector<Role>& roles) {
  if (!reader.Require("roles")) return;
  const size_t before = reader.errors().size();
  reader.ReadList("roles", kMaxRoles,
                  [&](const Json& element, const std::string& path) {
                    ObjectReader role(element, path, reader.errors());
                    ReadRole(role, roles.emplace_back());
                    role.Done();
                  });
  if (roles.empty() && reader.errors().size() == before) {
    reader.Add(
        {"spec.roles", "spec.roles is empty, must have at least 1 role"});
  }
}

void ReadSpec(ObjectReader& reader, JobSpec& spec) {
  reader.Read("program", spec.program,
              {[](const std::string& text) {
                 return !text.empty() && text.size() <= 63;
               },
               "the name of a program of at most 63 characters"});
  reader.ReadObject("parameters", spec.parameters);
  reader.Read("suspend", spec.suspend);
  reader.ReadChoice("managedBy", spec.managed_by,
                    {"disttrain.dev/controller", "kueue.x-k8s.io/multikueue"});
  ReadRoles(reader, spec.roles);
  reader.Read("mainContainer", spec.main_container);
  reader.Read("rendezvous", [&](ObjectReader& rendezvous) {
    rendezvous.Read("port", spec.rendezvous.port, {1, 65535});
    rendezvous.Read("timeoutSeconds", spec.rendezvous.timeout_seconds,
                    {1, 86400});
  });
  const auto read_part = [&reader](const char* key, auto& part, auto read) {
    reader.Read(key, [&](ObjectReader& object) { read(object, part); });
  };
  read_part("failurePolicy", spec.failure_policy, ReadFailurePolicy);
  read_part("successPolicy", spec.success_policy, ReadSuccessPolicy);
  read_part("deadlines", spec.deadlines, ReadDeadlines);
  read_part("cleanup", spec.cleanup, ReadCleanup);
  read_part("scheduling", spec.scheduling, ReadScheduling);
  read_part("network", spec.network, ReadNetwork);
  read_part("reporting", spec.reporting, ReadReporting);
  reader.Read("checkpoint", [&](ObjectReader& object) {
    ReadCheckpoint(object, spec.checkpoint.emplace());
  });
}

void ReadJob(ObjectReader& reader, Job& job) {
  std::string fixed;
  if (reader.Require("apiVersion")) {
    reader.ReadChoice("apiVersion", fixed, {kApiVersion});
  }
  if (reader.Require("kind")) reader.ReadChoice("kind", fixed, {kKind});
  if (reader.Require("metadata")) {
    reader.Read("metadata", [&](ObjectReader& o) { ReadMetadata(o, job); });
  }
  if (reader.Require("spec")) {
    reader.Read("spec", [&](ObjectReader& o) { ReadSpec(o, job.spec); });
  }
  reader.ReadObject("status", job.status);
}

}  // namespace

ParsedJob ParseAndValidate(const Json& object,
                           const AdmissionOptions& options) {
  ParsedJob parsed;
  ObjectReader reader(object, "", parsed.errors);
  if (!parsed.errors.empty()) return parsed;
  ReadJob(reader, parsed.job);
  reader.Done();
  // What could not be read, or holds it, is no ground for a second complaint.
  const std::vector<FieldError> unread = parsed.errors;
  for (FieldError& error : ValidateJob(parsed.job, options)) {
    const bool known = std::any_of(
        unread.begin(), unread.end(),
        [&](const FieldError& e) { return IsWithin(e.path, error.path); });
    if (!known) parsed.errors.push_back(std::move(error));
  }
  return parsed;
}

absl::StatusOr<Job> ParseJob(const Json& object,
                             const AdmissionOptions& options) {
  ParsedJob parsed = ParseAndValidate(object, options);
  if (!parsed.errors.empty()) return ToStatus(parsed.errors);
  return std::move(parsed.job);
}

}  // namespace disttrain
