// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/commands.h"
#include "controller/cli/load_job.h"
#include "controller/cli/yaml_emitter.h"
#include "controller/reconcile/pod_spec.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

// The uid comes from the API server; what is rendered has none to point to.
constexpr char kNoUid[] = "00000000-0000-0000-0000-000000000000";

Json WithoutOwner(Json object) {
  object["metadata"].erase("ownerReferences");
  return object;
}

// What the controller creates for the first attempt, in its order.
std::vector<Json> ObjectsOf(Job job, const PodContext& context) {
  job.uid = kNoUid;
  std::vector<Json> objects = {WithoutOwner(ServiceFor(job, /*attempt=*/0))};
  for (size_t role = 0; role < job.spec.roles.size(); ++role) {
    for (int i = 0; i < job.spec.roles[role].replicas; ++i) {
      objects.push_back(WithoutOwner(
          PodFor(job, role, i, /*attempt=*/0, /*incarnation=*/0, context)));
    }
  }
  return objects;
}

}  // namespace

const CommandSpec& RenderSpec() {
  static const CommandSpec kSpec = [] {
    CommandSpec spec{
        .name = "render",
        .summary = "Print the Service and the pods that a job becomes",
        .flags = ManifestFlags(),
        .examples =
            "  dtj render -f job.yaml\n"
            "  dtj render -f job.yaml --image registry.example/worker:7 | "
            "kubectl apply --dry-run=server -f -",
        .notes =
            "They are those of the first attempt in a cluster, without "
            "the owner that a real job\nwould be. Exit code: 0, or 2 for "
            "a manifest that is not valid."};
    spec.flags.push_back({.name = "image",
                          .placeholder = "IMAGE",
                          .help = "image of containers that name none"});
    spec.flags.push_back({.name = "output",
                          .letter = 'o',
                          .placeholder = "FORMAT",
                          .help = "yaml (default) or json, as one List",
                          .choices = {"yaml", "json"}});
    return spec;
  }();
  return kSpec;
}

int RenderCommand(const std::vector<std::string>& args, Streams& streams) {
  const ParseOutcome parsed = ParseOrExplain(RenderSpec(), args, streams);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  const ParsedFlags& flags = parsed.flags;
  const absl::StatusOr<Job> job = LoadJob({.path = flags.Get("file"),
                                           .sets = flags.All("set"),
                                           .worker = flags.Get("worker"),
                                           .worker_optional = true},
                                          streams);
  if (!job.ok()) {
    streams.err << Message(job.status()) << '\n';
    return kExitUsage;
  }
  PodContext context;
  context.image = flags.Get("image", context.image);
  const std::vector<Json> objects = ObjectsOf(*job, context);
  if (flags.Get("output") == "json") {
    const Json list = {
        {"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}};
    streams.out << list.dump(2) << '\n';
  } else {
    streams.out << ToYaml(objects);
  }
  return 0;
}

}  // namespace disttrain
