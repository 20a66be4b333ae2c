// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace disttrain {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// One value of a log line under its key. Fixed keys: job role rank attempt step
// pod reason status. "ts", "level" and "msg" are taken.
struct LogField {
  using Value = std::variant<std::string, int64_t, uint64_t, double, bool>;

  LogField(std::string_view name, bool flag) : key(name), value(flag) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) LogField(std::string_view name, T number)
      : key(name),
        value(static_cast<
              std::conditional_t<std::signed_integral<T>, int64_t, uint64_t>>(
            number)) {}
  LogField(std::string_view name, double number) : key(name), value(number) {}
  LogField(std::string_view name, std::string text)
      : key(name), value(std::move(text)) {}
  LogField(std::string_view name, std::string_view text)
      : LogField(name, std::string(text)) {}
  LogField(std::string_view name, const char* text)
      : LogField(name, std::string(text)) {}

  std::string key;
  Value value;
};

using LogFields = std::vector<LogField>;

struct LogOptions {
  enum class Format {
    kAuto,  // kText if `fd` is a terminal, else kJson
    kJson,  // one JSON object a line
    kText,  // for people; in colour if `fd` is a terminal
  };
  Format format = Format::kAuto;
  // Lines below it are dropped.
  LogLevel level = LogLevel::kInfo;
  // Where lines go; not owned.
  int fd = 2;
  // Instead of `fd` if set: gets each line with its newline, one call at a
  // time. Never a terminal.
  std::function<void(std::string_view line)> sink = nullptr;
  std::function<absl::Time()> now = absl::Now;
};

// The value of DISTTRAIN_LOG_FORMAT: absent or "" is kAuto, "json", "text".
// Errors: INVALID_ARGUMENT (anything else).
absl::StatusOr<LogOptions::Format> LogFormatFrom(
    const std::optional<std::string>& value);

// Writes events with fields, one line each:
//   {"ts":"2026-01-05T10:00:00.182Z","level":"info","msg":"step done","rank":3}
// The message is a constant; what varies goes into fields. Any bytes are safe:
// wrong UTF-8 becomes U+FFFD, control characters are escaped, a string over
// 8 KiB is cut, a key's last value wins, NaN and infinities become strings.
//
// A value: copies share the place that lines go to, each with its own bound
// fields.
// Threads: thread-safe. A line is one write(2); lines never interleave.
// Blocking: as long as the reader of `fd` blocks a write. A line that cannot be
// written is lost: there is nobody to tell.
class Log {
 public:
  // To standard error.
  Log();
  explicit Log(LogOptions options);

  // A log whose lines all carry `fields` as well.
  Log With(const LogFields& fields) const;

  void Debug(std::string_view msg, const LogFields& fields = {}) const;
  void Info(std::string_view msg, const LogFields& fields = {}) const;
  void Warn(std::string_view msg, const LogFields& fields = {}) const;
  // `status` goes into the field "status" as "CODE: message".
  void Error(std::string_view msg, const absl::Status& status,
             const LogFields& fields = {}) const;
  void Error(std::string_view msg, const LogFields& fields = {}) const;

 private:
  class Writer;

  void Write(LogLevel level, std::string_view msg,
             const LogFields& fields) const;

  std::shared_ptr<Writer> writer_;
  std::shared_ptr<const LogFields> bound_;
};

}  // namespace disttrain
