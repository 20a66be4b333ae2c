// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr size_t kMaxStringBytes = 8 << 10;
// How long a full pipe that does not block may delay a line.
constexpr int kFullPipeMilliseconds = 1000;

const char* Name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

std::string NonFinite(double number) {
  if (std::isnan(number)) return "NaN";
  return number > 0 ? "+Inf" : "-Inf";
}

std::string JsonKey(std::string_view key) {
  const bool taken = key == "ts" || key == "level" || key == "msg";
  return ValidUtf8(key) + (taken ? "_" : "");
}

nlohmann::ordered_json JsonValue(const LogField::Value& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::ordered_json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return ValidUtf8(Shortened(v, kMaxStringBytes));
        } else if constexpr (std::is_same_v<T, double>) {
          if (!std::isfinite(v)) return NonFinite(v);
          return v;
        } else {
          return v;
        }
      },
      value);
}

std::string JsonLine(absl::Time time, LogLevel level, std::string_view msg,
                     const LogFields& bound, const LogFields& fields) {
  nlohmann::ordered_json line;
  const std::string ts =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  line["ts"] = ts;
  line["level"] = Name(level);
  line["msg"] = ValidUtf8(Shortened(msg, kMaxStringBytes));
  for (const LogField& field : bound) {
    line[JsonKey(field.key)] = JsonValue(field.value);
  }
  for (const LogField& field : fields) {
    line[JsonKey(field.key)] = JsonValue(field.value);
  }
  return line.dump() + "\n";
}

// As it is, or in quotes if a person could not tell where it ends.
std::string TextValue(const std::string& raw) {
  std::string text = Printable(Shortened(raw, kMaxStringBytes));
  const bool plain = !text.empty() && text == raw &&
                     text.find_first_of(" \"=\\") == std::string::npos;
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string TextValue(const LogField::Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return TextValue(v);
        } else if constexpr (std::is_same_v<T, double>) {
          return std::isfinite(v) ? fmt::format("{:.6g}", v) : NonFinite(v);
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

struct Colour {
  const char* level = "";
  const char* key = "";
  const char* off = "";
};

Colour ColourOf(LogLevel level) {
  Colour colour{.level = "\x1b[32m", .key = "\x1b[2m", .off = "\x1b[0m"};
  if (level == LogLevel::kDebug) colour.level = "\x1b[2m";
  if (level == LogLevel::kWarn) colour.level = "\x1b[33m";
  if (level == LogLevel::kError) colour.level = "\x1b[1;31m";
  return colour;
}

std::string TextLine(absl::Time time, LogLevel level, std::string_view msg,
                     const LogFields& fields, const Colour& colour) {
  const std::string ts =
      absl::FormatTime("%H:%M:%E3S", time, absl::LocalTimeZone());
  std::string line =
      fmt::format("{} {}{:<5}{} {}", ts, colour.level, Name(level), colour.off,
                  Printable(Shortened(msg, kMaxStringBytes)));
  for (const LogField& field : fields) {
    line += fmt::format(" {}{}={}{}", colour.key, Printable(field.key),
                        colour.off, TextValue(field.value));
  }
  return line + "\n";
}

// Bound fields, then those of the line; of two with one key the later one.
LogFields Merged(const LogFields& bound, const LogFields& fields) {
  LogFields merged = bound;
  for (const LogField& field : fields) {
    const auto same = std::find_if(
        merged.begin(), merged.end(),
        [&field](const LogField& other) { return other.key == field.key; });
    if (same == merged.end()) {
      merged.push_back(field);
    } else {
      same->value = field.value;
    }
  }
  return merged;
}

// One write; more only if the kernel took a part, or the pipe is full and does
// not block.
void WriteAll(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(fd, line.data(), line.size());
    if (written >= 0) {
      line.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
      if (::poll(&writable, 1, kFullPipeMilliseconds) == 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

class Log::Writer {
 public:
  explicit Writer(LogOptions options)
      : options_(std::move(options)),
        terminal_(!options_.sink && ::isatty(options_.fd) == 1),
        text_(options_.format == LogOptions::Format::kText ||
              (options_.format == LogOptions::Format::kAuto && terminal_)) {}

  void Write(LogLevel level, std::string_view msg, const LogFields& bound,
             const LogFields& fields) {
    if (level < options_.level) return;
    const absl::Time now = options_.now();
    const std::string line =
        text_ ? TextLine(now, level, msg, Merged(bound, fields),
                         terminal_ ? ColourOf(level) : Colour{})
              : JsonLine(now, level, msg, bound, fields);
    // The lock keeps a line whole also where the kernel takes it in parts.
    const absl::MutexLock lock(&mu_);
    if (options_.sink) {
      options_.sink(line);
    } else {
      WriteAll(options_.fd, line);
    }
  }

 private:
  const LogOptions options_;
  const bool terminal_;
  const bool text_;
  absl::Mutex mu_;
};

absl::StatusOr<LogOptions::Format> LogFormatFrom(
    const std::optional<std::string>& value) {
  if (!value || value->empty()) return LogOptions::Format::kAuto;
  if (*value == "json") return LogOptions::Format::kJson;
  if (*value == "text") return LogOptions::Format::kText;
  return absl::InvalidArgumentError(
      fmt::format("DISTTRAIN_LOG_FORMAT=\"{}\" is neither \"json\" nor "
                  "\"text\"",
                  Printable(Shortened(*value, 64))));
}

Log::Log() : Log(LogOptions{}) {}

Log::Log(LogOptions options)
    : writer_(std::make_shared<Writer>(std::move(options))),
      bound_(std::make_shared<const LogFields>()) {}

Log Log::With(const LogFields& fields) const {
  Log log = *this;
  log.bound_ = std::make_shared<const LogFields>(Merged(*bound_, fields));
  return log;
}

void Log::Debug(std::string_view msg, const LogFields& fields) const {
  Write(LogLevel::kDebug, msg, fields);
}

void Log::Info(std::string_view msg, const LogFields& fields) const {
  Write(LogLevel::kInfo, msg, fields);
}

void Log::Warn(std::string_view msg, const LogFields& fields) const {
  Write(LogLevel::kWarn, msg, fields);
}

void Log::Error(std::string_view msg, const absl::Status& status,
                const LogFields& fields) const {
  LogFields all = {{"status", status.ToString()}};
  all.insert(all.end(), fields.begin(), fields.end());
  Write(LogLevel::kError, msg, all);
}

void Log::Error(std::string_view msg, const LogFields& fields) const {
  Write(LogLevel::kError, msg, fields);
}

void Log::Write(LogLevel level, std::string_view msg,
                const LogFields& fields) const {
  writer_->Write(level, msg, *bound_, fields);
}

}  // namespace disttrain
