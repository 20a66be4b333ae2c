// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/catalogue.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

std::vector<NamedProgram> Programs() {
  NamedProgram reinforce;
  reinforce.name = "reinforce";
  reinforce.info.driver = "agent";
  reinforce.info.roles = {{.name = "agent", .max_replicas = 1},
                          {.name = "observer", .replaceable = true}};
  NamedProgram free;
  free.name = "free";
  free.info.driver = "leader";
  return {reinforce, free};
}

std::string RoleError(const std::vector<std::string>& roles) {
  return Message(CheckRoles(Programs()[0], roles));
}

TEST(Catalogue, FindsAProgramByItsName) {
  const auto programs = Programs();
  EXPECT_EQ(*FindProgram(programs, "free"), &programs[1]);
}

TEST(Catalogue, NamesItsProgramsWhenOneIsUnknown) {
  EXPECT_EQ(
      Message(FindProgram(Programs(), "reinforced").status()),
      "spec.program is \"reinforced\", did you mean reinforce?; programs of "
      "this worker: reinforce, free");
  EXPECT_EQ(
      Message(FindProgram(Programs(), "").status()),
      "DISTTRAIN_PROGRAM is missing; programs of this worker: reinforce, free");
}

TEST(Catalogue, AcceptsTheRolesThatAProgramNames) {
  EXPECT_TRUE(
      CheckRoles(Programs()[0], {"agent", "observer", "observer"}).ok());
  EXPECT_TRUE(CheckRoles(Programs()[1], {"leader", "anything"}).ok());
}

TEST(Catalogue, NamesRolesThatAreMissingUnknownOrTooMany) {
  EXPECT_EQ(RoleError({"observer"}),
            "spec.roles: role agent is missing (it runs the program); program "
            "reinforce has the roles agent, observer");
  EXPECT_EQ(RoleError({"agent", "agent", "observer"}),
            "spec.roles: role agent has 2 ranks, must have at most 1; program "
            "reinforce has the roles agent, observer");
  EXPECT_EQ(
      RoleError({"agent", "observers"}),
      "spec.roles: role observer is missing; role observers is not known, did "
      "you mean observer?; program reinforce has the roles agent, observer");
  EXPECT_EQ(
      Message(CheckRoles(Programs()[1], {"worker"})),
      "spec.roles: role leader is missing (it runs the program); program free "
      "has the roles leader");
}

TEST(Catalogue, RefusesToReplaceRanksThatAProgramCannotDoWithout) {
  const std::vector<std::string> roles = {"agent", "observer"};
  EXPECT_TRUE(CheckRoles(Programs()[0], roles, {"observer"}).ok());
  EXPECT_EQ(Message(CheckRoles(Programs()[0], roles, {"agent"})),
            "spec.roles: role agent has restart: Rank, but none of its ranks "
            "can be replaced; program reinforce has the roles agent, observer");
}

TEST(Catalogue, TakesTheFirstRankOfTheDriversRole) {
  EXPECT_EQ(DriverRank(Programs()[1], {"other", "leader", "leader"}), 1);
}

TEST(Catalogue, ListsProgramsWithRolesAndParameters) {
  const nlohmann::json list = ListPrograms(Programs());
  EXPECT_EQ(list["programs"][0]["driver"], "agent");
  EXPECT_EQ(list["programs"][0]["roles"][0]["maxReplicas"], 1);
  EXPECT_EQ(list["programs"][0]["roles"][1]["replaceable"], true);
  EXPECT_TRUE(list["programs"][1]["parameters"].empty());
}

}  // namespace
}  // namespace disttrain
