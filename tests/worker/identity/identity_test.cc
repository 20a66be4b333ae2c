// SPDX-License-Identifier: Apache-2.0
#include "worker/identity/identity.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using ::testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

absl::StatusOr<Identity> Read(const Environment& environment) {
  return IdentityFromEnv(
      [&environment](const char* name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        if (found == environment.end()) return std::nullopt;
        return found->second;
      });
}

// What a pod of ours has: observer 1 of 2, after one agent.
Environment Pod() {
  return {{"DISTTRAIN_JOB", "ml/cartpole"},
          {"DISTTRAIN_JOB_UID", "6f3c"},
          {"DISTTRAIN_ATTEMPT", "2"},
          {"DISTTRAIN_INCARNATION", "1"},
          {"DISTTRAIN_ROLE", "observer"},
          {"DISTTRAIN_ROLE_INDEX", "1"},
          {"DISTTRAIN_RENDEZVOUS", "cartpole-agent-0.cartpole.ml.svc:29400"},
          {"DISTTRAIN_RENDEZVOUS_TIMEOUT", "120"},
          {"DISTTRAIN_PROGRAM", "reinforce"},
          {"DISTTRAIN_PARAMETERS", R"({"gamma":0.99})"},
          {"DISTTRAIN_TLS_DIR", "/run/disttrain/tls"},
          {"DISTTRAIN_METRICS_PORT", "9400"},
          {"DISTTRAIN_CHECKPOINT_DIR", "/checkpoint"},
          {"DISTTRAIN_REPORT_INTERVAL", "0.5"},
          {"DISTTRAIN_POD_NAME", "cartpole-observer-1-r2-i1"},
          {"DISTTRAIN_TERMINATION_MESSAGE_PATH", "/tmp/message"},
          {"RANK", "2"},
          {"WORLD_SIZE", "3"},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "1"},
          {"ROLE_NAME", "observer"},
          {"ROLE_RANK", "1"},
          {"ROLE_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "cartpole-agent-0.cartpole.ml.svc"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_RUN_ID", "6f3c"}};
}

// The error's message when `changes` are made to Pod().
std::string Error(const Environment& changes) {
  Environment environment = Pod();
  for (const auto& [name, value] : changes) environment[name] = value;
  const auto identity = Read(environment);
  if (identity.ok()) return "no error";
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(identity.status());
}

TEST(Identity, ReadsAPodsEnvironment) {
  const auto id = Read(Pod());
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(id->job, "ml/cartpole");
  EXPECT_EQ(id->job_uid, "6f3c");
  EXPECT_EQ(id->attempt, 2);
  EXPECT_EQ(id->incarnation, 1);
  EXPECT_EQ(id->role, "observer");
  EXPECT_EQ(id->role_index, 1);
  EXPECT_EQ(id->rank, 2);
  EXPECT_EQ(id->world_size, 3);
  EXPECT_EQ(id->role_rank, 1);
  EXPECT_EQ(id->role_world_size, 2);
  EXPECT_EQ(id->rendezvous, "cartpole-agent-0.cartpole.ml.svc:29400");
  EXPECT_EQ(id->rendezvous_timeout, absl::Seconds(120));
  EXPECT_EQ(id->program, "reinforce");
  EXPECT_EQ(id->parameters, R"({"gamma":0.99})");
  EXPECT_EQ(id->tls_dir, "/run/disttrain/tls");
  EXPECT_EQ(id->metrics_port, 9400);
  EXPECT_EQ(id->checkpoint_dir, "/checkpoint");
  EXPECT_EQ(id->report_interval, absl::Milliseconds(500));
  EXPECT_EQ(id->pod, "cartpole-observer-1-r2-i1");
  EXPECT_EQ(id->termination_message_path, "/tmp/message");
}

TEST(Identity, SaysWhetherItsRankCanBeReplaced) {
  EXPECT_FALSE(Read(Pod())->replaceable);
  auto environment = Pod();
  environment["DISTTRAIN_RESTART"] = "Rank";
  EXPECT_TRUE(Read(environment)->replaceable);
  EXPECT_THAT(Error({{"DISTTRAIN_RESTART", "rank"}}),
              HasSubstr("DISTTRAIN_RESTART=\"rank\": expected Gang or Rank"));
}

TEST(Identity, DefaultsAllButRankWorldAndAddress) {
  const auto id = Read({{"RANK", "1"},
                        {"WORLD_SIZE", "2"},
                        {"DISTTRAIN_RENDEZVOUS", "[::1]:29400"}});
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(id->job, "local");
  EXPECT_EQ(id->job_uid, "local");
  EXPECT_EQ(id->attempt, 0);
  EXPECT_EQ(id->role, "default");
  EXPECT_EQ(id->role_rank, 1);
  EXPECT_EQ(id->role_world_size, 2);
  EXPECT_EQ(id->role_index, 1);
  EXPECT_EQ(id->rendezvous_timeout, absl::Seconds(300));
  EXPECT_EQ(id->parameters, "{}");
  EXPECT_EQ(id->metrics_port, std::nullopt);
  EXPECT_EQ(id->report_interval, absl::Seconds(10));
  EXPECT_EQ(id->pod, "default-1");
  EXPECT_EQ(id->termination_message_path, "/dev/termination-log");
}

// What torchrun 2.11 sets for each process (torch/distributed/elastic/agent/
// server/local_elastic_agent.py).
Environment Torchrun() {
  return {{"LOCAL_RANK", "1"},
          {"RANK", "3"},
          {"GROUP_RANK", "1"},
          {"ROLE_RANK", "3"},
          {"ROLE_NAME", "default"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"WORLD_SIZE", "4"},
          {"GROUP_WORLD_SIZE", "2"},
          {"ROLE_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node0.example"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RESTART_COUNT", "1"},
          {"TORCHELASTIC_MAX_RESTARTS", "3"},
          {"TORCHELASTIC_RUN_ID", "job7"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

TEST(Identity, AcceptsTorchrunsNames) {
  const auto id = Read(Torchrun());
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(id->job, "job7");
  EXPECT_EQ(id->job_uid, "job7");
  EXPECT_EQ(id->attempt, 1);
  EXPECT_EQ(id->role, "default");
  EXPECT_EQ(id->role_rank, 3);
  EXPECT_EQ(id->role_index, 1);
  EXPECT_EQ(id->local_rank, 1);
  EXPECT_EQ(id->rendezvous, "node0.example:29400");  // 29500 is torchrun's
}

TEST(Identity, MeetsAtMasterPortIfTorchrunDoesNotUseIt) {
  Environment environment = Torchrun();
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(Read(environment)->rendezvous, "node0.example:29500");
  environment.erase("TORCHELASTIC_USE_AGENT_STORE");
  environment["MASTER_ADDR"] = "fd00::7";
  EXPECT_EQ(Read(environment)->rendezvous, "[fd00::7]:29500");
  environment.erase("MASTER_PORT");
  EXPECT_EQ(Read(environment)->rendezvous, "[fd00::7]:29400");
}

TEST(Identity, TellsAllMistakesTogether) {
  const auto id = Read({{"DISTTRAIN_ATTEMPT", "one"},
                        {"ROLE_RANK", "1"},
                        {"DISTTRAIN_METRICS_PORT", "70000"}});
  EXPECT_EQ(id.status().message(),
            "DISTTRAIN_ATTEMPT=\"one\" is not a whole number in [0, "
            "2147483647]; RANK is not set: expected this process's global "
            "rank, from 0; WORLD_SIZE is not set: expected the number of "
            "processes of the job; DISTTRAIN_RENDEZVOUS is not set: expected "
            "\"host:port\", \"[v6]:port\" or \"unix:/path\" of rank 0, or "
            "torchrun's MASTER_ADDR; DISTTRAIN_METRICS_PORT=\"70000\" is not "
            "a whole number in [0, 65535]");
}

TEST(Identity, NumbersAreStrict) {
  for (const char* wrong : {"", " 1", "1 ", "1x", "+1", "-1", "0x1", "1.0",
                            "1e0", "99999999999999999999", "\n1"}) {
    EXPECT_THAT(Error({{"RANK", wrong}}),
                ::testing::EndsWith("is not a whole number in [0, 4194304]"))
        << wrong;
  }
  EXPECT_THAT(Error({{"WORLD_SIZE", "0"}}),
              HasSubstr("WORLD_SIZE=\"0\" is not a whole number in [1, "));
  for (const char* wrong : {"", "0", "-1", "nan", "inf", "1s", "1e99"}) {
    EXPECT_THAT(
        Error({{"DISTTRAIN_RENDEZVOUS_TIMEOUT", wrong}}),
        ::testing::EndsWith("is not a number of seconds in (0, 2.592e+06]"))
        << wrong;
  }
}

TEST(Identity, MessagesAreOneShortLine) {
  EXPECT_EQ(Error({{"RANK", "1\n\x1b[2J"}}),
            "RANK=\"1\\n\\x1b[2J\" is not a whole number in [0, 4194304]");
  EXPECT_LT(Error({{"RANK", std::string(100000, '9')}}).size(), 200u);
}

TEST(Identity, NamesContradictions) {
  EXPECT_EQ(Error({{"RANK", "3"}}),
            "RANK=3 is outside [0, 3): WORLD_SIZE is 3");
  EXPECT_EQ(Error({{"ROLE_RANK", "2"}, {"DISTTRAIN_ROLE_INDEX", "2"}}),
            "ROLE_RANK=2 is outside [0, 2): ROLE_WORLD_SIZE is 2");
  EXPECT_EQ(
      Error(
          {{"LOCAL_RANK", "1"}, {"ROLE_RANK", "2"}, {"ROLE_WORLD_SIZE", "3"}}),
      "LOCAL_RANK=1 is outside [0, 1): LOCAL_WORLD_SIZE is 1");
  EXPECT_EQ(Error({{"LOCAL_WORLD_SIZE", "4"},
                   {"ROLE_RANK", "4"},
                   {"ROLE_WORLD_SIZE", "5"},
                   {"WORLD_SIZE", "5"}}),
            "no error");
  EXPECT_EQ(Error({{"ROLE_WORLD_SIZE", "4"}}),
            "ROLE_WORLD_SIZE=4 contradicts WORLD_SIZE=3: a part is larger than "
            "the whole");
  EXPECT_EQ(Error({{"ROLE_NAME", "agent"}}),
            "DISTTRAIN_ROLE=\"observer\" contradicts ROLE_NAME=\"agent\"");
  EXPECT_EQ(Error({{"TORCHELASTIC_RESTART_COUNT", "1"}}),
            "DISTTRAIN_ATTEMPT=2 contradicts TORCHELASTIC_RESTART_COUNT=1");
  EXPECT_EQ(Error({{"ROLE_RANK", "0"}}),
            "ROLE_RANK=0 contradicts DISTTRAIN_ROLE_INDEX=1, "
            "LOCAL_WORLD_SIZE=1 and LOCAL_RANK=0: expected 1");
}

TEST(Identity, ALocalRankNeedsALocalWorld) {
  const auto id = Read({{"RANK", "1"},
                        {"WORLD_SIZE", "2"},
                        {"LOCAL_RANK", "1"},
                        {"MASTER_ADDR", "localhost"}});
  EXPECT_EQ(id.status().message(),
            "LOCAL_RANK=1 is outside [0, 1): LOCAL_WORLD_SIZE is not set");
}

TEST(Identity, AMalformedSizeIsToldOnce) {
  EXPECT_EQ(Error({{"WORLD_SIZE", "three"}, {"LOCAL_WORLD_SIZE", "x"}}),
            "WORLD_SIZE=\"three\" is not a whole number in [1, 4194304]; "
            "LOCAL_WORLD_SIZE=\"x\" is not a whole number in [1, 4194304]");
}

TEST(Identity, RefusesWrongAddresses) {
  for (const char* wrong :
       {"host", "host:", ":1", "host:0", "host:65536", "host:1x", "::1:29400",
        "[::1]", "[::1]:", "[zz]:1", "[1.2.3.4]:1", "a b:1", "host:1\n",
        "http://host:1", "unix:", "unix:relative", "unix:/folder/", "[]:1"}) {
    EXPECT_THAT(Error({{"DISTTRAIN_RENDEZVOUS", wrong}}),
                HasSubstr("DISTTRAIN_RENDEZVOUS=\""))
        << wrong;
  }
  EXPECT_EQ(Error({{"DISTTRAIN_RENDEZVOUS", "host"}}),
            "DISTTRAIN_RENDEZVOUS=\"host\": expected \"host:port\", "
            "\"[v6]:port\" or \"unix:/path\"");
  const std::string path = "/" + std::string(95, 'x') + "/r.sock";
  EXPECT_THAT(Error({{"DISTTRAIN_RENDEZVOUS", "unix:" + path}}),
              HasSubstr("expected a path of at most 100 bytes, it has 103"));
  EXPECT_THAT(
      Error({{"DISTTRAIN_RENDEZVOUS", "unix:/" + std::string(96, 'x') + "/r"}}),
      HasSubstr("expected a shorter folder"));
  Environment environment = Torchrun();
  environment["MASTER_ADDR"] = "a/b";
  EXPECT_EQ(Read(environment).status().message(),
            "MASTER_ADDR=\"a/b\": expected a host");
}

TEST(Identity, ParametersAreOneJsonObject) {
  for (const char* wrong : {"[]", "1", "{", "{} {}", "null", "{'a':1}"}) {
    EXPECT_THAT(Error({{"DISTTRAIN_PARAMETERS", wrong}}),
                ::testing::EndsWith("is not a JSON object"))
        << wrong;
  }
  EXPECT_EQ(Error({{"DISTTRAIN_PARAMETERS",
                    "{\"a\":\"" + std::string(64 << 10, 'x') + "\"}"}}),
            "DISTTRAIN_PARAMETERS has 65544 bytes: expected at most 65536");
  // Deep nesting neither crashes nor takes long.
  EXPECT_THAT(
      Error({{"DISTTRAIN_PARAMETERS", "{\"a\":" + std::string(60000, '[')}}),
      ::testing::EndsWith("is not a JSON object"));
  EXPECT_EQ(Error({{"DISTTRAIN_PARAMETERS", ""}}), "no error");
}

TEST(Identity, NamesAreWords) {
  EXPECT_THAT(Error({{"DISTTRAIN_ROLE", "two words"}}),
              HasSubstr("DISTTRAIN_ROLE=\"two words\" is not a word"));
  EXPECT_THAT(Error({{"DISTTRAIN_JOB_UID", std::string(300, 'u')}}),
              HasSubstr("is not a word of at most 253"));
}

TEST(DataListenAddress, LiesBesideAUnixRendezvous) {
  Identity id;
  id.rendezvous = "unix:/run/user/7/disttrain/rendezvous.sock";
  id.rank = 2;
  id.attempt = 1;
  id.incarnation = 3;
  EXPECT_EQ(*DataListenAddress(id, absl::InfinitePast()),
            "unix:/run/user/7/disttrain/d2-1-3.sock");
}

TEST(DataListenAddress, IsTheInterfaceThatLeadsToRankZero) {
  Identity id;
  id.rendezvous = "127.0.0.1:29400";
  EXPECT_EQ(*DataListenAddress(id, absl::Now()), "127.0.0.1:0");
  EXPECT_EQ(*PodHost(id, absl::Now()), "127.0.0.1");
  id.rendezvous = "[::1]:29400";
  const auto address = DataListenAddress(id, absl::Now());
  if (address.ok()) {  // else the machine has no IPv6
    EXPECT_EQ(*address, "[::1]:0");
  }
}

TEST(DataListenAddress, NamesAHostThatDoesNotResolve) {
  Identity id;
  id.rendezvous = "no-such-host.invalid:29400";
  const auto address = DataListenAddress(id, absl::InfinitePast());
  EXPECT_EQ(address.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(address.status()),
              HasSubstr("host name no-such-host.invalid of rank 0: "));
}

}  // namespace
}  // namespace disttrain
