// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every metric name of disttrain, once. Base units; labels are bounded.
// A worker's metrics carry the labels job_name, role and rank.
namespace disttrain::metric {

inline constexpr char kWorkerInfo[] = "disttrain_worker_info";
inline constexpr char kWorkerUpTimestamp[] =
    "disttrain_worker_up_timestamp_seconds";
inline constexpr char kWorkerHeartbeatTimestamp[] =
    "disttrain_worker_heartbeat_timestamp_seconds";

inline constexpr char kTrainSteps[] = "disttrain_train_steps_total";
inline constexpr char kTrainSamples[] = "disttrain_train_samples_total";
inline constexpr char kTrainEpochs[] = "disttrain_train_epochs_total";
inline constexpr char kTrainStepDuration[] =
    "disttrain_train_step_duration_seconds";
inline constexpr char kTrainLoss[] = "disttrain_train_loss";
inline constexpr char kTrainGradientNorm[] = "disttrain_train_gradient_norm";
inline constexpr char kTrainLearningRate[] = "disttrain_train_learning_rate";
// Label kind: loss, grad.
inline constexpr char kTrainNonfinite[] = "disttrain_train_nonfinite_total";

inline constexpr char kEpisodeReward[] = "disttrain_rl_episode_reward";
inline constexpr char kEpisodeRewardMean[] = "disttrain_rl_episode_reward_mean";
inline constexpr char kEpisodeLength[] = "disttrain_rl_episode_length";
inline constexpr char kEpisodes[] = "disttrain_rl_episodes_total";
inline constexpr char kEnvironmentSteps[] = "disttrain_rl_env_steps_total";

// Labels method and peer_role.
inline constexpr char kRpcCallDuration[] =
    "disttrain_rpc_call_duration_seconds";
// Label code: ok, error, deadline, peer_lost, cancelled.
inline constexpr char kRpcCalls[] = "disttrain_rpc_calls_total";
inline constexpr char kRpcCallsInFlight[] = "disttrain_rpc_calls_in_flight";
inline constexpr char kRpcCallsActive[] = "disttrain_rpc_server_calls_active";
inline constexpr char kRpcSentBytes[] = "disttrain_rpc_sent_bytes_total";
inline constexpr char kRpcReceivedBytes[] =
    "disttrain_rpc_received_bytes_total";
// Label state: owned, used, pending.
inline constexpr char kRpcReferences[] = "disttrain_rpc_references";
inline constexpr char kRpcPoolThreads[] = "disttrain_rpc_pool_threads";
inline constexpr char kRpcPoolIdleThreads[] = "disttrain_rpc_pool_idle_threads";

inline constexpr char kProcessCpu[] = "process_cpu_seconds_total";
inline constexpr char kProcessResidentMemory[] =
    "process_resident_memory_bytes";
inline constexpr char kProcessVirtualMemory[] = "process_virtual_memory_bytes";
inline constexpr char kProcessOpenFds[] = "process_open_fds";
inline constexpr char kProcessMaxFds[] = "process_max_fds";
inline constexpr char kProcessStartTime[] = "process_start_time_seconds";
inline constexpr char kProcessThreads[] = "process_threads";

}  // namespace disttrain::metric
