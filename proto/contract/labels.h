// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Names that objects of a job carry in Kubernetes, and how pods are named.
namespace disttrain {

inline constexpr char kApiGroup[] = "disttrain.dev";
inline constexpr char kApiVersion[] = "disttrain.dev/v1alpha1";
inline constexpr char kKind[] = "DistTrainingJob";

namespace label {
inline constexpr char kManaged[] = "disttrain.dev/managed";  // "true"
inline constexpr char kJobName[] = "disttrain.dev/job-name";
inline constexpr char kJobUid[] = "disttrain.dev/job-uid";
inline constexpr char kRole[] = "disttrain.dev/role";
inline constexpr char kReplicaIndex[] = "disttrain.dev/replica-index";
// Global rank of the pod's first process.
inline constexpr char kRank[] = "disttrain.dev/rank";
inline constexpr char kAttempt[] = "disttrain.dev/attempt";
inline constexpr char kIncarnation[] = "disttrain.dev/incarnation";
}  // namespace label

// "<job>-<role>-<index>": the pod's host name in every attempt.
std::string HostName(std::string_view job, std::string_view role, int index);

// HostName, with "-r<attempt>" from attempt 1 on and "-i<incarnation>" from
// incarnation 1 on, so that a new pod never waits for its predecessor to go.
std::string PodName(std::string_view job, std::string_view role, int index,
                    int attempt, int incarnation);

}  // namespace disttrain
