// SPDX-License-Identifier: Apache-2.0
#include "controller/local/supervisor_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace disttrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Payload(const std::string& frame) { return frame.substr(4); }

TEST(SupervisorProtocol, AStartSurvivesTheJourneyWithBytesThatAreNoText) {
  const StartProcess start{.id = "uid-1",
                           .argv = {"/bin/sh", "-c", "exit 3"},
                           .env = {"A=1", "B=\xff\xfe"},
                           .directory = "/tmp",
                           .log_path = "/tmp/\xff.log"};
  const auto command = DecodeCommand(Payload(Encode(SupervisorCommand(start))));
  ASSERT_TRUE(command.ok()) << command.status();
  const auto& decoded = std::get<StartProcess>(*command);
  EXPECT_EQ(decoded.id, "uid-1");
  EXPECT_THAT(decoded.argv, ElementsAre("/bin/sh", "-c", "exit 3"));
  EXPECT_THAT(decoded.env, ElementsAre("A=1", "B=\xff\xfe"));
  EXPECT_EQ(decoded.directory, "/tmp");
  EXPECT_EQ(decoded.log_path, "/tmp/\xff.log");
}

TEST(SupervisorProtocol, AnExitSurvivesTheJourney) {
  const auto event = DecodeEvent(Payload(
      Encode(ProcessEvent(ProcessExited{"uid-1", /*exit_code=*/137, 9}))));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(std::get<ProcessExited>(*event).exit_code, 137);
  EXPECT_EQ(std::get<ProcessExited>(*event).signal, 9);
}

TEST(SupervisorProtocol, RefusesWhatIsNoMessage) {
  EXPECT_THAT(std::string(DecodeCommand("\xff garbage").status().message()),
              HasSubstr("not a supervisor message"));
  EXPECT_EQ(DecodeCommand("").status().code(),
            absl::StatusCode::kInvalidArgument);
  // A known type without its fields.
  EXPECT_EQ(DecodeEvent(Payload(Encode(SupervisorCommand(KillAll{}))))
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FrameReader, CutsAStreamIntoFramesWhereverItIsSplit) {
  const std::string stream = Encode(SupervisorCommand(SignalProcess{"a", 15})) +
                             Encode(SupervisorCommand(KillAll{}));
  for (size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader;
    int frames = 0;
    for (const std::string& part :
         {stream.substr(0, split), stream.substr(split)}) {
      reader.Append(part);
      for (auto next = reader.Next(); next.ok() && next->has_value();
           next = reader.Next()) {
        EXPECT_TRUE(DecodeCommand(**next).ok());
        ++frames;
      }
    }
    EXPECT_EQ(frames, 2) << "split at " << split;
  }
}

TEST(FrameReader, RefusesALengthAboveTheLimitBeforeItArrives) {
  FrameReader reader;
  reader.Append(std::string("\xff\xff\xff\xff", 4));
  EXPECT_EQ(std::string(reader.Next().status().message()),
            "a supervisor frame of 4294967295 bytes is above the limit of "
            "4194304");
}

}  // namespace
}  // namespace disttrain
