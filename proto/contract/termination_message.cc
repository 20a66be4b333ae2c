// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/termination_message.h"

#include <cmath>
#include <limits>

#include "nlohmann/json.hpp"

namespace disttrain {
namespace {

constexpr size_t kMaxBytes = 4096;
// Room for the fields around the cause.
constexpr size_t kMaxCauseBytes = 3000;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

// Cuts at a border of UTF-8 characters: continuation bytes are 10xxxxxx.
std::string Shortened(std::string text) {
  if (text.size() <= kMaxCauseBytes) return text;
  size_t end = kMaxCauseBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  text.resize(end);
  return text + "…";
}

std::string Dump(const TerminationMessage& message, const std::string& cause) {
  nlohmann::ordered_json json = {{"rank", message.rank},
                                 {"role", message.role},
                                 {"cause", cause},
                                 {"step", message.step},
                                 {"exitCode", message.exit_code},
                                 {"timeMs", message.time_ms}};
  if (message.failed_rank) json["failedRank"] = *message.failed_rank;
  const auto put = [&json](const char* key, std::optional<double> value) {
    if (value && std::isfinite(*value)) json[key] = *value;
  };
  put("reward", message.reward);
  put("episodeReward", message.episode_reward);
  put("loss", message.loss);
  // Bytes that are not UTF-8 become U+FFFD instead of an exception.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string ToJson(const TerminationMessage& message) {
  std::string line = Dump(message, Shortened(message.cause));
  if (line.size() <= kMaxBytes) return line;
  // Escapes can make a cause up to six times longer.
  return Dump(message, "too long to escape; see the log");
}

std::optional<TerminationMessage> ParseTerminationMessage(
    std::string_view text) {
  const auto json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  // Not negative, and at most `max`: else it is none of ours.
  const auto integer = [&json](const char* key,
                               int64_t max) -> std::optional<int64_t> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_unsigned() ||
        found->get<uint64_t>() > static_cast<uint64_t>(max)) {
      return std::nullopt;
    }
    return found->get<int64_t>();
  };
  const auto number = [&json](const char* key) -> std::optional<double> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  const auto text_of = [&json](const char* key) -> std::string {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
  };
  const auto rank = integer("rank", kMaxInt);
  if (!rank || !json.contains("cause")) return std::nullopt;
  TerminationMessage message;
  message.rank = static_cast<int>(*rank);
  message.role = text_of("role");
  message.cause = text_of("cause");
  message.step = integer("step", kMaxInt64).value_or(0);
  message.exit_code =
      static_cast<int>(integer("exitCode", kMaxInt).value_or(0));
  message.time_ms = integer("timeMs", kMaxInt64).value_or(0);
  if (const auto failed = integer("failedRank", kMaxInt))
    message.failed_rank = static_cast<int>(*failed);
  message.reward = number("reward");
  message.episode_reward = number("episodeReward");
  message.loss = number("loss");
  return message;
}

}  // namespace disttrain
