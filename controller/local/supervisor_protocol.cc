// SPDX-License-Identifier: Apache-2.0
#include "controller/local/supervisor_protocol.h"

#include <cstdint>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/runtime/check.h"

namespace disttrain {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 4;

std::string Frame(const Json& object) {
  std::string payload;
  Json::to_cbor(object, payload);
  DISTTRAIN_CHECK(payload.size() <= UINT32_MAX);
  std::string frame;
  frame.reserve(kLengthBytes + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>((payload.size() >> shift) & 0xff));
  }
  return frame + payload;
}

struct CommandToJson {
  Json operator()(const StartProcess& start) const {
    return {{"type", "start"},        {"id", start.id},
            {"argv", start.argv},     {"env", start.env},
            {"dir", start.directory}, {"log", start.log_path}};
  }
  Json operator()(const SignalProcess& signal) const {
    return {{"type", "signal"}, {"id", signal.id}, {"signal", signal.signal}};
  }
  Json operator()(const KillAll&) const { return {{"type", "killAll"}}; }
};

struct EventToJson {
  Json operator()(const ProcessStarted& event) const {
    return {{"type", "started"}, {"id", event.id}, {"pid", event.pid}};
  }
  Json operator()(const ProcessStartFailed& event) const {
    return {
        {"type", "startFailed"}, {"id", event.id}, {"reason", event.reason}};
  }
  Json operator()(const ProcessExited& event) const {
    return {{"type", "exited"},
            {"id", event.id},
            {"code", event.exit_code},
            {"signal", event.signal}};
  }
};

SupervisorCommand CommandFromJson(const Json& object) {
  const auto type = object.at("type").get<std::string>();
  if (type == "start") {
    return StartProcess{.id = object.at("id"),
                        .argv = object.at("argv"),
                        .env = object.at("env"),
                        .directory = object.at("dir"),
                        .log_path = object.at("log")};
  }
  if (type == "signal") {
    return SignalProcess{.id = object.at("id"), .signal = object.at("signal")};
  }
  if (type == "killAll") return KillAll{};
  throw std::invalid_argument(fmt::format("unknown type \"{}\"", type));
}

ProcessEvent EventFromJson(const Json& object) {
  const auto type = object.at("type").get<std::string>();
  if (type == "started") {
    return ProcessStarted{.id = object.at("id"), .pid = object.at("pid")};
  }
  if (type == "startFailed") {
    return ProcessStartFailed{.id = object.at("id"),
                              .reason = object.at("reason")};
  }
  if (type == "exited") {
    return ProcessExited{.id = object.at("id"),
                         .exit_code = object.at("code"),
                         .signal = object.at("signal")};
  }
  throw std::invalid_argument(fmt::format("unknown type \"{}\"", type));
}

// The border between nlohmann's exceptions and Status.
template <typename Message>
absl::StatusOr<Message> Decode(std::string_view payload,
                               Message (*from_json)(const Json&)) {
  try {
    return from_json(Json::from_cbor(payload));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("not a supervisor message: {}", error.what()));
  }
}

}  // namespace

std::string Encode(const SupervisorCommand& command) {
  return Frame(std::visit(CommandToJson(), command));
}

std::string Encode(const ProcessEvent& event) {
  return Frame(std::visit(EventToJson(), event));
}

absl::StatusOr<SupervisorCommand> DecodeCommand(std::string_view payload) {
  return Decode<SupervisorCommand>(payload, CommandFromJson);
}

absl::StatusOr<ProcessEvent> DecodeEvent(std::string_view payload) {
  return Decode<ProcessEvent>(payload, EventFromJson);
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (buffer_.size() < kLengthBytes) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length = (length << 8) | static_cast<unsigned char>(buffer_[i]);
  }
  if (length > kMaxSupervisorFrame) {
    return absl::InvalidArgumentError(
        fmt::format("a supervisor frame of {} bytes is above the limit of {}",
                    length, kMaxSupervisorFrame));
  }
  if (buffer_.size() < kLengthBytes + length) return std::nullopt;
  std::string payload = buffer_.substr(kLengthBytes, length);
  buffer_.erase(0, kLengthBytes + length);
  return payload;
}

}  // namespace disttrain
