// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "controller/kube/kube_api.h"

// What an API server does to one object: pure functions behind MemoryApi.
namespace disttrain::memory {

// "pod default/x", for messages.
std::string DescribeKey(Resource resource, const std::string& name_space,
                        const std::string& name);

std::string Uid(const Json& object);
// metadata.namespace, or "default".
std::string NameSpace(const Json& object);
// RFC 3339 in whole seconds, as Kubernetes writes its times.
std::string Timestamp(absl::Time time);

using Selector = std::vector<std::pair<std::string, std::string>>;
// "a=b,c=d". INVALID_ARGUMENT for anything else.
absl::StatusOr<Selector> ParseSelector(const std::string& text);
// `name_space` "": any.
bool Matches(const Json& object, const std::string& name_space,
             const Selector& selector);

// INVALID_ARGUMENT if the object could not be stored: no metadata, no name.
absl::Status CheckObject(Resource resource, const Json& object);

// NOT_FOUND without a `stored`; ABORTED if `object` says another
// resourceVersion or uid.
absl::Status CheckPrecondition(const Json* stored, const Json& object,
                               const std::string& what);

// `stored` with the fields of `patch` (RFC 7386). Status, uid, name, namespace,
// creation and deletion times stay as they are.
Json Merged(const Json& stored, const Json& patch);

// Counts metadata.generation up if spec differs.
void MoveGeneration(const Json& before, Json& after);

// The grace that a deletion of `pod` gets; 0: it vanishes at once.
int64_t GraceSeconds(const Json& pod, std::optional<int> asked);

// It is being deleted already, with that grace or less.
bool EndsWithin(const Json& object, int64_t grace_seconds);

std::vector<std::string> OwnerUids(const Json& object);
// It has owners, and none of them is among `existing`.
bool IsOrphan(const Json& object, const std::set<std::string>& existing);

}  // namespace disttrain::memory
