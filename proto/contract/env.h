// SPDX-License-Identifier: Apache-2.0
#pragma once

// Environment of every process of a job: set by the controller (pod_spec), read
// once by the worker (identity). Each name has one meaning; nothing else of
// ours is read from the environment.
namespace disttrain::env {

// Prefix of all names of ours. A template that sets one is refused.
inline constexpr char kPrefix[] = "DISTTRAIN_";

// Name of the job, "namespace/name".
inline constexpr char kJob[] = "DISTTRAIN_JOB";
// metadata.uid of the job: fences every protocol.
inline constexpr char kJobUid[] = "DISTTRAIN_JOB_UID";
// Whole-job restarts so far, >= 0.
inline constexpr char kAttempt[] = "DISTTRAIN_ATTEMPT";
// Restarts of this rank alone within the attempt, >= 0.
inline constexpr char kIncarnation[] = "DISTTRAIN_INCARNATION";
inline constexpr char kRole[] = "DISTTRAIN_ROLE";
// The role's `restart`: "Rank" if losing this rank ends nothing but its own
// work, else "Gang" (the default).
inline constexpr char kRestart[] = "DISTTRAIN_RESTART";
// Index of the pod within its role, >= 0.
inline constexpr char kRoleIndex[] = "DISTTRAIN_ROLE_INDEX";
// Where rank 0 serves the rendezvous: "host:port" or "unix:/path/to.sock".
// With "unix:" the data sockets of all ranks lie in the same folder.
inline constexpr char kRendezvous[] = "DISTTRAIN_RENDEZVOUS";
// Seconds until all ranks must have joined.
inline constexpr char kRendezvousTimeout[] = "DISTTRAIN_RENDEZVOUS_TIMEOUT";
// Name of the program to run; absent: the container's own command.
inline constexpr char kProgram[] = "DISTTRAIN_PROGRAM";
// spec.parameters as one JSON object.
inline constexpr char kParameters[] = "DISTTRAIN_PARAMETERS";
// Folder with ca.crt, tls.crt, tls.key; absent: no TLS.
inline constexpr char kTlsDir[] = "DISTTRAIN_TLS_DIR";
// Port of /metrics; 0: the kernel chooses and the log says which.
inline constexpr char kMetricsPort[] = "DISTTRAIN_METRICS_PORT";
inline constexpr char kCheckpointDir[] = "DISTTRAIN_CHECKPOINT_DIR";
// Seconds between two reports.
inline constexpr char kReportInterval[] = "DISTTRAIN_REPORT_INTERVAL";
// Name of the pod (downward API) or of the local process.
inline constexpr char kPodName[] = "DISTTRAIN_POD_NAME";
// File that takes the termination message; default kTerminationLog.
inline constexpr char kTerminationMessagePath[] =
    "DISTTRAIN_TERMINATION_MESSAGE_PATH";
inline constexpr char kTerminationLog[] = "/dev/termination-log";
// "json" (default when standard error is no terminal) or "text".
inline constexpr char kLogFormat[] = "DISTTRAIN_LOG_FORMAT";

// torchrun's names, with torchrun's meanings
// (https://pytorch.org/docs/stable/elastic/run.html).
inline constexpr char kRank[] = "RANK";
inline constexpr char kWorldSize[] = "WORLD_SIZE";
inline constexpr char kLocalRank[] = "LOCAL_RANK";
inline constexpr char kLocalWorldSize[] = "LOCAL_WORLD_SIZE";
inline constexpr char kGroupRank[] = "GROUP_RANK";
inline constexpr char kGroupWorldSize[] = "GROUP_WORLD_SIZE";
inline constexpr char kRoleName[] = "ROLE_NAME";
inline constexpr char kRoleRank[] = "ROLE_RANK";
inline constexpr char kRoleWorldSize[] = "ROLE_WORLD_SIZE";
inline constexpr char kMasterAddr[] = "MASTER_ADDR";
inline constexpr char kMasterPort[] = "MASTER_PORT";
inline constexpr char kTorchelasticRestartCount[] =
    "TORCHELASTIC_RESTART_COUNT";
inline constexpr char kTorchelasticMaxRestarts[] = "TORCHELASTIC_MAX_RESTARTS";
inline constexpr char kTorchelasticRunId[] = "TORCHELASTIC_RUN_ID";
inline constexpr char kTorchelasticUseAgentStore[] =
    "TORCHELASTIC_USE_AGENT_STORE";
// A plain `torchrun x.py` reads these.
inline constexpr char kPetNnodes[] = "PET_NNODES";
inline constexpr char kPetNprocPerNode[] = "PET_NPROC_PER_NODE";
inline constexpr char kPetNodeRank[] = "PET_NODE_RANK";
inline constexpr char kPetMasterAddr[] = "PET_MASTER_ADDR";
inline constexpr char kPetMasterPort[] = "PET_MASTER_PORT";

inline constexpr int kDefaultRendezvousPort = 29400;
// Left free for torch's own store.
inline constexpr int kDefaultMasterPort = 29500;
inline constexpr int kDefaultMetricsPort = 9400;

}  // namespace disttrain::env
