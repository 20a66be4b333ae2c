// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/frame.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "worker/transport/wire.h"

namespace disttrain::transport {
namespace {

// What the type allows; 0 for a type we do not know.
size_t MinLength(FrameType type) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kRefuse:
    case FrameType::kChunk:
      return 1;
    case FrameType::kBegin:
      return kTablePrefixBytes;
    case FrameType::kGoodbye:
      return 0;
  }
  return 0;
}

size_t MaxLength(FrameType type) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kRefuse:
      return kMaxGreetingBytes;
    case FrameType::kBegin:
    case FrameType::kChunk:
      return kMaxFrameBytes;
    case FrameType::kGoodbye:
      return 0;
  }
  return 0;
}

bool IsGreeting(FrameType type) {
  return type == FrameType::kHello || type == FrameType::kRefuse;
}

absl::Status CheckHeader(const FrameHeader& header) {
  const auto type = static_cast<int>(header.type);
  if (header.type < FrameType::kHello || header.type > FrameType::kGoodbye) {
    return absl::DataLossError(fmt::format("frame type {} is unknown", type));
  }
  if (header.version != kProtocolVersion && !IsGreeting(header.type)) {
    return absl::DataLossError(
        fmt::format("frame of protocol version {}, expected {}", header.version,
                    kProtocolVersion));
  }
  if (header.length < MinLength(header.type) ||
      header.length > MaxLength(header.type)) {
    return absl::DataLossError(fmt::format(
        "frame of type {} has {} bytes, expected {} to {}", type, header.length,
        MinLength(header.type), MaxLength(header.type)));
  }
  return absl::OkStatus();
}

}  // namespace

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header) {
  std::string out = "DT";
  AppendLittleEndian(out, header.version);
  AppendLittleEndian(out, static_cast<uint8_t>(header.type));
  AppendLittleEndian(out, uint32_t{0});
  AppendLittleEndian(out, header.stream);
  AppendLittleEndian(out, header.length);
  FrameHeaderBytes bytes;
  std::memcpy(bytes.data(), out.data(), bytes.size());
  return bytes;
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(absl::string_view bytes) {
  DISTTRAIN_CHECK(bytes.size() == kFrameHeaderBytes);
  if (bytes[0] != 'D' || bytes[1] != 'T') {
    return absl::DataLossError(fmt::format(
        "frame starts with {:02x} {:02x}, expected 44 54: the other side does "
        "not speak this protocol",
        static_cast<uint8_t>(bytes[0]), static_cast<uint8_t>(bytes[1])));
  }
  if (const auto zero = LittleEndian<uint32_t>(bytes, 4); zero != 0) {
    return absl::DataLossError(
        fmt::format("reserved frame bytes are {:#x}, expected 0", zero));
  }
  FrameHeader header;
  header.version = LittleEndian<uint8_t>(bytes, 2);
  header.type = static_cast<FrameType>(LittleEndian<uint8_t>(bytes, 3));
  header.stream = LittleEndian<uint32_t>(bytes, 8);
  header.length = LittleEndian<uint32_t>(bytes, 12);
  if (absl::Status status = CheckHeader(header); !status.ok()) return status;
  return header;
}

std::string EncodeFrame(FrameType type, absl::string_view payload) {
  FrameHeader header;
  header.type = type;
  header.length = static_cast<uint32_t>(payload.size());
  const FrameHeaderBytes bytes = EncodeFrameHeader(header);
  std::string out(bytes.data(), bytes.size());
  out.append(payload.data(), payload.size());
  return out;
}

std::string EncodeTable(size_t header_bytes, absl::Span<const uint64_t> sizes) {
  std::string out;
  out.reserve(kTablePrefixBytes + 8 * sizes.size());
  AppendLittleEndian(out, static_cast<uint32_t>(header_bytes));
  AppendLittleEndian(out, static_cast<uint32_t>(sizes.size()));
  for (const uint64_t size : sizes) AppendLittleEndian(out, size);
  return out;
}

absl::StatusOr<TablePrefix> DecodeTablePrefix(absl::string_view bytes,
                                              uint32_t length,
                                              const Limits& limits) {
  DISTTRAIN_CHECK(bytes.size() == kTablePrefixBytes);
  const TablePrefix prefix{LittleEndian<uint32_t>(bytes, 0),
                           LittleEndian<uint32_t>(bytes, 4)};
  if (prefix.header_bytes > limits.header_bytes) {
    return absl::DataLossError(
        fmt::format("message header of {} bytes is over the limit of {}",
                    prefix.header_bytes, limits.header_bytes));
  }
  if (prefix.buffers > std::min(limits.buffers, kMaxBuffers)) {
    return absl::DataLossError(
        fmt::format("message of {} buffers is over the limit of {}",
                    prefix.buffers, std::min(limits.buffers, kMaxBuffers)));
  }
  if (kTablePrefixBytes + uint64_t{8} * prefix.buffers > length) {
    return absl::DataLossError(
        fmt::format("frame of {} bytes is too short for the sizes of {} "
                    "buffers",
                    length, prefix.buffers));
  }
  return prefix;
}

absl::StatusOr<std::vector<uint64_t>> DecodeSizes(absl::string_view bytes,
                                                  uint32_t header_bytes,
                                                  const Limits& limits) {
  DISTTRAIN_CHECK(bytes.size() % 8 == 0);
  std::vector<uint64_t> sizes(bytes.size() / 8);
  uint64_t left = limits.message_bytes;
  if (header_bytes > left) {
    return absl::DataLossError(fmt::format(
        "message is over the limit of {} bytes", limits.message_bytes));
  }
  left -= header_bytes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = LittleEndian<uint64_t>(bytes, 8 * i);
    if (sizes[i] > left) {
      return absl::DataLossError(fmt::format(
          "message is over the limit of {} bytes (buffer {} has {})",
          limits.message_bytes, i, sizes[i]));
    }
    left -= sizes[i];
  }
  return sizes;
}

absl::Status CheckLimits(const Message& message, const Limits& limits) {
  if (message.header.size() > limits.header_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("message header of {} bytes is over the limit of {}",
                    message.header.size(), limits.header_bytes));
  }
  if (message.buffers.size() > limits.buffers) {
    return absl::InvalidArgumentError(
        fmt::format("message of {} buffers is over the limit of {}",
                    message.buffers.size(), limits.buffers));
  }
  if (ContentBytes(message) > limits.message_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("message of {} bytes is over the limit of {}",
                    ContentBytes(message), limits.message_bytes));
  }
  return absl::OkStatus();
}

uint64_t ContentBytes(const Message& message) {
  uint64_t bytes = message.header.size();
  for (const ConstBuffer& buffer : message.buffers) bytes += buffer.size;
  return bytes;
}

}  // namespace disttrain::transport
