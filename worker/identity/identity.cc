// SPDX-License-Identifier: Apache-2.0
#include "worker/identity/identity.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/contract/env.h"
#include "proto/runtime/status.h"
#include "worker/identity/address.h"
#include "worker/identity/env_reader.h"
#include "worker/identity/local_address.h"

namespace disttrain {
namespace {

// 32 roles of 9,999 replicas fit, with room for processes per pod.
constexpr int kMaxWorldSize = 1 << 22;
constexpr int kMaxCount = std::numeric_limits<int>::max();
constexpr size_t kMaxParametersBytes = 64 << 10;
constexpr size_t kMaxNameBytes = 253;
constexpr size_t kMaxRoleBytes = 63;
constexpr absl::Duration kMaxWait = absl::Hours(24 * 30);

void ReadJob(EnvReader& env, Identity& id) {
  const auto run_id = env.Word(env::kTorchelasticRunId, kMaxNameBytes);
  const auto job = env.Word(env::kJob, kMaxNameBytes);
  const auto uid = env.Word(env::kJobUid, kMaxNameBytes);
  id.job = job.value_or(run_id.value_or("local"));
  id.job_uid = uid.value_or(run_id.value_or(id.job));
  const auto restarts = env.Int(env::kTorchelasticRestartCount, 0, kMaxCount);
  const auto attempt = env.Int(env::kAttempt, 0, kMaxCount);
  if (attempt && restarts && *attempt != *restarts) {
    env.Mistake(fmt::format("{}={} contradicts {}={}", env::kAttempt, *attempt,
                            env::kTorchelasticRestartCount, *restarts));
  }
  id.attempt = attempt.value_or(restarts.value_or(0));
  id.incarnation = env.Int(env::kIncarnation, 0, kMaxCount).value_or(0);
}

std::optional<int> Required(EnvReader& env, const char* name, int min,
                            const char* meaning) {
  if (!env.IsSet(name)) {
    env.Mistake(fmt::format("{} is not set: expected {}", name, meaning));
  }
  return env.Int(name, min, kMaxWorldSize);
}

// A variable that counts processes: its value if it is there and right.
struct Size {
  const char* name;
  std::optional<int> value;
};

// `rank` is below `size`, which is `assumed` if it is not set. A malformed one
// was told already.
void CheckInside(EnvReader& env, const char* name, std::optional<int> rank,
                 const Size& size, int assumed) {
  if (!rank || (!size.value && env.IsSet(size.name))) return;
  const int limit = size.value.value_or(assumed);
  if (*rank < limit) return;
  env.Mistake(fmt::format("{}={} is outside [0, {}): {} is {}", name, *rank,
                          limit, size.name,
                          size.value ? std::to_string(limit) : "not set"));
}

// A group of processes within the world is not larger than the world.
void CheckFits(EnvReader& env, const Size& part, const Size& world) {
  if (!part.value || !world.value || *part.value <= *world.value) return;
  env.Mistake(
      fmt::format("{}={} contradicts {}={}: a part is larger than the whole",
                  part.name, *part.value, world.name, *world.value));
}

// Returns the role's size; alone, a role is the whole world. No value: told as
// a mistake already.
Size ReadRanks(EnvReader& env, Identity& id) {
  const auto rank =
      Required(env, env::kRank, 0, "this process's global rank, from 0");
  const Size world{
      env::kWorldSize,
      Required(env, env::kWorldSize, 1, "the number of processes of the job")};
  const Size local_world{env::kLocalWorldSize,
                         env.Int(env::kLocalWorldSize, 1, kMaxWorldSize)};
  const Size role_world{env::kRoleWorldSize,
                        env.Int(env::kRoleWorldSize, 1, kMaxWorldSize)};
  const auto local_rank = env.Int(env::kLocalRank, 0, kMaxWorldSize);
  if (world.value) CheckInside(env, env::kRank, rank, world, 1);
  CheckInside(env, env::kLocalRank, local_rank, local_world, 1);
  CheckFits(env, local_world, world);
  CheckFits(env, role_world, world);
  id.rank = rank.value_or(0);
  id.world_size = world.value.value_or(1);
  id.local_rank = local_rank.value_or(0);
  id.local_world_size = local_world.value.value_or(1);
  id.role_world_size = role_world.value.value_or(id.world_size);
  return env.IsSet(env::kRoleWorldSize)
             ? role_world
             : Size{env::kRoleWorldSize, world.value};
}

// The place within the role, from ROLE_RANK, from DISTTRAIN_ROLE_INDEX, or, if
// there is neither, from RANK.
void ReadRoleRank(EnvReader& env, const Size& role_world, Identity& id) {
  const auto index = env.Int(env::kRoleIndex, 0, kMaxWorldSize);
  const auto role_rank = env.Int(env::kRoleRank, 0, kMaxWorldSize);
  const int64_t expected =
      int64_t{index.value_or(0)} * id.local_world_size + id.local_rank;
  if (index && role_rank && *role_rank != expected) {
    env.Mistake(fmt::format(
        "{}={} contradicts {}={}, {}={} and {}={}: expected {}", env::kRoleRank,
        *role_rank, env::kRoleIndex, *index, env::kLocalWorldSize,
        id.local_world_size, env::kLocalRank, id.local_rank, expected));
  }
  const int otherwise =
      index ? static_cast<int>(std::min<int64_t>(expected, kMaxWorldSize))
            : id.rank;
  id.role_rank = role_rank.value_or(otherwise);
  id.role_index = index.value_or(id.role_rank / id.local_world_size);
  const bool from_rank = !role_rank && !index;
  if (!role_world.value || (from_rank && !env.IsSet(role_world.name))) return;
  CheckInside(env, role_rank ? env::kRoleRank : "rank within the role",
              id.role_rank, role_world, *role_world.value);
}

void ReadRole(EnvReader& env, const Size& role_world, Identity& id) {
  const auto name = env.Word(env::kRoleName, kMaxRoleBytes);
  const auto role = env.Word(env::kRole, kMaxRoleBytes);
  if (role && name && *role != *name) {
    env.Mistake(fmt::format("{} contradicts {}", Assignment(env::kRole, *role),
                            Assignment(env::kRoleName, *name)));
  }
  id.role = role.value_or(name.value_or("default"));
  ReadRoleRank(env, role_world, id);
}

void ReadRestart(EnvReader& env, Identity& id) {
  const auto restart = env.Word(env::kRestart, kMaxNameBytes);
  if (!restart) return;
  if (*restart != "Gang" && *restart != "Rank") {
    env.Mistake(fmt::format("{}: expected Gang or Rank",
                            Assignment(env::kRestart, *restart)));
    return;
  }
  id.replaceable = *restart == "Rank";
  if (id.replaceable && id.rank == 0) {
    env.Mistake(
        fmt::format("{}=Rank contradicts {}=0: rank 0 serves the "
                    "rendezvous and cannot be replaced",
                    env::kRestart, env::kRank));
  }
}

bool IsTrue(const std::optional<std::string>& value) {
  return value && (*value == "True" || *value == "true" || *value == "1");
}

void ReadRendezvous(EnvReader& env, Identity& id) {
  const auto ours = env.Text(env::kRendezvous);
  const auto host = env.Text(env::kMasterAddr);
  const auto master_port = env.Int(env::kMasterPort, 1, 65535);
  if (!ours && !host) {
    env.Mistake(
        fmt::format("{} is not set: expected \"host:port\", "
                    "\"[v6]:port\" or \"unix:/path\" of rank 0, or "
                    "torchrun's {}",
                    env::kRendezvous, env::kMasterAddr));
    return;
  }
  // torchrun's agent keeps MASTER_PORT for its own store.
  const bool taken = IsTrue(env.Text(env::kTorchelasticUseAgentStore));
  const int port = taken ? env::kDefaultRendezvousPort
                         : master_port.value_or(env::kDefaultRendezvousPort);
  id.rendezvous = ours ? *ours : JoinHostPort(*host, port);
  const absl::Status status = CheckRendezvousAddress(id.rendezvous);
  if (!status.ok()) {
    env.Mistake(fmt::format("{}: {}",
                            ours ? Assignment(env::kRendezvous, *ours)
                                 : Assignment(env::kMasterAddr, *host),
                            ours ? Message(status) : "expected a host"));
    return;
  }
  if (!UsesUnixSockets(id)) return;
  const std::string path = DataSocketPath(id);
  if (path.size() > kMaxSocketPathBytes) {
    env.Mistake(fmt::format(
        "{}: expected a shorter folder, the data socket {} has {} of at most "
        "{} bytes",
        Assignment(env::kRendezvous, id.rendezvous), path, path.size(),
        kMaxSocketPathBytes));
  }
}

void ReadParameters(EnvReader& env, Identity& id) {
  const auto text = env.Text(env::kParameters);
  if (!text) return;
  if (text->size() > kMaxParametersBytes) {
    env.Mistake(fmt::format("{} has {} bytes: expected at most {}",
                            env::kParameters, text->size(),
                            kMaxParametersBytes));
    return;
  }
  const auto json =
      nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    env.Mistake(fmt::format("{} is not a JSON object",
                            Assignment(env::kParameters, *text)));
    return;
  }
  id.parameters = *text;
}

void ReadSettings(EnvReader& env, Identity& id) {
  const Identity defaults;
  id.program = env.Word(env::kProgram, kMaxNameBytes).value_or("");
  ReadParameters(env, id);
  id.tls_dir = env.Text(env::kTlsDir).value_or("");
  id.checkpoint_dir = env.Text(env::kCheckpointDir).value_or("");
  id.metrics_port = env.Int(env::kMetricsPort, 0, 65535);
  id.rendezvous_timeout = env.Seconds(env::kRendezvousTimeout, kMaxWait)
                              .value_or(defaults.rendezvous_timeout);
  id.report_interval = env.Seconds(env::kReportInterval, kMaxWait)
                           .value_or(defaults.report_interval);
  id.pod = env.Word(env::kPodName, kMaxNameBytes)
               .value_or(fmt::format("{}-{}", id.role, id.role_index));
  id.termination_message_path =
      env.Text(env::kTerminationMessagePath).value_or(env::kTerminationLog);
}

}  // namespace

std::optional<std::string> ProcessEnv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

absl::StatusOr<Identity> IdentityFromEnv(const GetEnv& get_env) {
  EnvReader env(get_env);
  Identity id;
  ReadJob(env, id);
  const Size role_world = ReadRanks(env, id);
  ReadRole(env, role_world, id);
  ReadRestart(env, id);
  ReadRendezvous(env, id);
  ReadSettings(env, id);
  RETURN_IF_ERROR(env.status());
  return id;
}

bool UsesUnixSockets(const Identity& identity) {
  return identity.rendezvous.compare(0, kUnixPrefix.size(), kUnixPrefix) == 0;
}

}  // namespace disttrain
