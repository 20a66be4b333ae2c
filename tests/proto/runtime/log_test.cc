// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/log.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace disttrain {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// 2026-01-05T10:00:00.182Z
const absl::Time kNow = absl::FromUnixMillis(1767607200182);

// A log whose lines end up in `lines`.
Log Captured(std::string* lines,
             LogOptions::Format format = LogOptions::Format::kAuto,
             LogLevel level = LogLevel::kInfo) {
  return Log({.format = format,
              .level = level,
              .sink = [lines](std::string_view line) { *lines += line; },
              .now = [] { return kNow; }});
}

TEST(Log, WritesOneJsonObjectALine) {
  std::string lines;
  const Log log = Captured(&lines).With({{"job", "ml/cartpole"}, {"rank", 3}});
  log.Info("step done",
           {{"step", 40}, {"loss", 0.5}, {"solved", false}, {"role", "agent"}});
  EXPECT_EQ(lines,
            R"({"ts":"2026-01-05T10:00:00.182Z","level":"info",)"
            R"("msg":"step done","job":"ml/cartpole","rank":3,"step":40,)"
            R"("loss":0.5,"solved":false,"role":"agent"})"
            "\n");
}

TEST(Log, KeepsTheWholeRangeOfIntegers) {
  std::string lines;
  Captured(&lines).Info("m", {{"u", std::numeric_limits<uint64_t>::max()},
                              {"i", std::numeric_limits<int64_t>::min()}});
  EXPECT_THAT(lines, HasSubstr("\"u\":18446744073709551615"));
  EXPECT_THAT(lines, HasSubstr("\"i\":-9223372036854775808"));
}

TEST(Log, ErrorNamesTheStatus) {
  std::string lines;
  Captured(&lines).Error("all-reduce ended",
                         absl::UnavailableError("rank 1 is gone"),
                         {{"step", 4}});
  const json line = json::parse(lines);
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["status"], "UNAVAILABLE: rank 1 is gone");
  EXPECT_EQ(line["step"], 4);
}

TEST(Log, AnyBytesMakeValidJson) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string lines;
  Captured(&lines).Info(all, {{all, all}, {"cut", "\xC3"}});
  ASSERT_EQ(lines.find('\n'), lines.size() - 1);
  const json line = json::parse(lines);  // throws on wrong UTF-8
  EXPECT_EQ(line["cut"], "\xEF\xBF\xBD");
}

TEST(Log, NonFiniteNumbersAreStrings) {
  std::string lines;
  const double inf = std::numeric_limits<double>::infinity();
  Captured(&lines).Info("m", {{"a", std::nan("")}, {"b", inf}, {"c", -inf}});
  const json line = json::parse(lines);
  EXPECT_EQ(line["a"], "NaN");
  EXPECT_EQ(line["b"], "+Inf");
  EXPECT_EQ(line["c"], "-Inf");
}

TEST(Log, TheLastValueOfAKeyWinsAndOursAreNotTaken) {
  std::string lines;
  const Log log = Captured(&lines).With({{"rank", 1}}).With({{"rank", 2}});
  log.Info("m", {{"msg", "other"}, {"rank", 3}});
  EXPECT_EQ(lines,
            R"({"ts":"2026-01-05T10:00:00.182Z","level":"info","msg":"m",)"
            R"("rank":3,"msg_":"other"})"
            "\n");
}

TEST(Log, LongStringsAreCut) {
  std::string lines;
  Captured(&lines).Info("m", {{"cause", std::string(100000, 'x')}});
  EXPECT_LT(lines.size(), 9000u);
  EXPECT_THAT(json::parse(lines)["cause"].get<std::string>(), HasSubstr("x…"));
}

TEST(Log, DropsWhatIsBelowItsLevel) {
  std::string lines;
  const Log log = Captured(&lines, LogOptions::Format::kJson, LogLevel::kWarn);
  log.Debug("d");
  log.Info("i");
  log.Warn("w");
  log.Error("e");
  EXPECT_THAT(lines, Not(HasSubstr("\"i\"")));
  EXPECT_THAT(lines, HasSubstr("\"w\""));
  EXPECT_THAT(lines, HasSubstr("\"e\""));
}

TEST(Log, TextFormReadsWell) {
  std::string lines;
  const Log log =
      Captured(&lines, LogOptions::Format::kText).With({{"rank", 3}});
  log.Warn("slow step", {{"seconds", 0.25},
                         {"rank", 4},
                         {"cause", "say \"hi\"\n\x1b[2J"},
                         {"empty", ""}});
  EXPECT_THAT(lines, ::testing::EndsWith(
                         ".182 warn  slow step rank=4 seconds=0.25 "
                         "cause=\"say \\\"hi\\\"\\n\\x1b[2J\" empty=\"\"\n"));
  EXPECT_THAT(lines, Not(HasSubstr("\x1b")));
}

// What was written to the other end of `fd` so far.
std::string ReadSome(int fd) {
  std::array<char, 4096> buffer{};
  const ssize_t bytes = ::read(fd, buffer.data(), buffer.size());
  return bytes > 0 ? std::string(buffer.data(), static_cast<size_t>(bytes))
                   : "";
}

TEST(Log, ATerminalGetsColourAndAPipeJson) {
  int terminal = -1;
  int inside = -1;
  ASSERT_EQ(::openpty(&terminal, &inside, nullptr, nullptr, nullptr), 0);
  Log({.fd = inside}).Info("hello", {{"rank", 1}});
  const std::string shown = ReadSome(terminal);
  EXPECT_THAT(shown, HasSubstr("\x1b[32minfo "));
  EXPECT_THAT(shown, HasSubstr("hello"));
  Log({.format = LogOptions::Format::kJson, .fd = inside}).Info("hello");
  EXPECT_THAT(ReadSome(terminal), HasSubstr("\"msg\":\"hello\"}"));
  ::close(terminal);
  ::close(inside);

  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  Log({.fd = pipe[1]}).Info("hello");
  EXPECT_EQ(json::parse(ReadSome(pipe[0]))["msg"], "hello");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(Log, LinesOfThreadsNeverInterleave) {
  char path[] = "/tmp/log_test_XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  const Log log({.fd = fd});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      const Log mine = log.With({{"thread", t}});
      for (int i = 0; i < 200; ++i) {
        mine.Info("line", {{"i", i}, {"pad", std::string(3000, 'x')}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  std::string text;
  for (std::string part = ReadSome(fd); !part.empty(); part = ReadSome(fd)) {
    text += part;
  }
  ::close(fd);
  ::unlink(path);
  std::istringstream lines(text);
  std::set<std::pair<int, int>> seen;
  for (std::string line; std::getline(lines, line);) {
    const json parsed = json::parse(line);
    seen.emplace(parsed["thread"], parsed["i"]);
  }
  EXPECT_EQ(seen.size(), 800u);
}

TEST(Log, FormatComesFromAWord) {
  EXPECT_EQ(*LogFormatFrom(std::nullopt), LogOptions::Format::kAuto);
  EXPECT_EQ(*LogFormatFrom("json"), LogOptions::Format::kJson);
  EXPECT_EQ(*LogFormatFrom("text"), LogOptions::Format::kText);
  EXPECT_EQ(LogFormatFrom("xml").status().message(),
            "DISTTRAIN_LOG_FORMAT=\"xml\" is neither \"json\" nor \"text\"");
}

}  // namespace
}  // namespace disttrain
