// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/transport/endpoint.h"

// What goes over a data connection. All integers are little-endian.
//
//   connection = greeting { message | GOODBYE }
//   greeting   = dialler's HELLO, then acceptor's HELLO | REFUSE
//   message    = BEGIN { CHUNK }              at most one message is incomplete
//   frame      = header payload
//   header     = "DT" version:u8 type:u8 zero:u32 stream:u32 length:u32
//   HELLO      = see hello.h                  ≤ 4 KiB
//   REFUSE     = kind:u8 text                 ≤ 4 KiB
//   BEGIN      = header_bytes:u32 buffers:u32 { size:u64 } content   ≤ 256 KiB
//   CHUNK      = content                      1 … 256 KiB
//   GOODBYE    =                              nothing follows
//
// The content of a message is its header and then its buffers, back to back. A
// small message is complete in its BEGIN; between the chunks of a large one
// other messages may pass that are complete in their BEGIN. `stream` numbers
// the messages of one connection and ties chunks to their BEGIN.
namespace disttrain::transport {

inline constexpr uint8_t kProtocolVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr size_t kMaxFrameBytes = size_t{256} << 10;
inline constexpr size_t kMaxGreetingBytes = 4096;
inline constexpr size_t kTablePrefixBytes = 8;
// So many sizes fit into a BEGIN and leave room for a small message's content.
inline constexpr size_t kMaxBuffers = 16384;

enum class FrameType : uint8_t {
  kHello = 1,
  kRefuse = 2,
  kBegin = 3,
  kChunk = 4,
  kGoodbye = 5,
};

struct FrameHeader {
  uint8_t version = kProtocolVersion;
  FrameType type = FrameType::kGoodbye;
  uint32_t stream = 0;
  uint32_t length = 0;  // bytes of payload
};

// The fixed part of a BEGIN.
struct TablePrefix {
  uint32_t header_bytes = 0;
  uint32_t buffers = 0;
};

using FrameHeaderBytes = std::array<char, kFrameHeaderBytes>;

FrameHeaderBytes EncodeFrameHeader(const FrameHeader& header);

// `bytes`: exactly kFrameHeaderBytes. Any version is let through for HELLO and
// REFUSE, so that a mismatch can be refused by name.
// Errors: DATA_LOSS: not a frame of ours, or a length over the type's limit.
absl::StatusOr<FrameHeader> DecodeFrameHeader(absl::string_view bytes);

// A whole frame with a short payload: HELLO, REFUSE, GOODBYE.
std::string EncodeFrame(FrameType type, absl::string_view payload);

// Prefix and sizes of a BEGIN.
std::string EncodeTable(size_t header_bytes, absl::Span<const uint64_t> sizes);

// `bytes`: exactly kTablePrefixBytes of a BEGIN with `length` bytes of payload.
// Errors: DATA_LOSS: over `limits`, or the table does not fit into the frame.
absl::StatusOr<TablePrefix> DecodeTablePrefix(absl::string_view bytes,
                                              uint32_t length,
                                              const Limits& limits);

// `bytes`: 8 for each buffer. Errors: DATA_LOSS: more than limits.message_bytes
// with `header_bytes` included.
absl::StatusOr<std::vector<uint64_t>> DecodeSizes(absl::string_view bytes,
                                                  uint32_t header_bytes,
                                                  const Limits& limits);

// Errors: INVALID_ARGUMENT: `message` is over a limit. What is bigger is not
// sent, since the peer would drop the connection.
absl::Status CheckLimits(const Message& message, const Limits& limits);

// Bytes of content: header and buffers.
uint64_t ContentBytes(const Message& message);

}  // namespace disttrain::transport
