// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "disttrain/v1/rpc.pb.h"
#include "google/protobuf/arena.h"
#include "worker/rpc/reference_state.h"
#include "worker/transport/endpoint.h"

namespace disttrain::rpc::internal {

// Deepest nesting of lists in a value, and most items of a kind in a message.
inline constexpr int kMaxDepth = 32;
inline constexpr int kMaxTensors = 4096;
inline constexpr int kMaxReferences = 4096;
inline constexpr int kMaxArguments = 64;
inline constexpr int kMaxDimensions = 64;

// One message: the header, its tensors and its references, by position. The
// same whether it is being written, has been read, or goes to oneself.
struct WireMessage {
  WireMessage();
  WireMessage(const WireMessage&) = delete;
  WireMessage& operator=(const WireMessage&) = delete;

  alignas(8) char first_block[1024];  // no allocation for a usual header
  google::protobuf::Arena arena;
  v1::RpcHeader* header;  // on the arena
  std::vector<at::Tensor> tensors;
  std::vector<std::shared_ptr<ReferenceState>> references;
};

// Parses and checks a header. INVALID_ARGUMENT says what is wrong with it:
// no or an unknown kind, too deep, too many items, a tensor header that names
// no dtype of ours or a size that overflows.
absl::StatusOr<std::shared_ptr<WireMessage>> ParseHeader(
    std::string_view header);

// Makes the tensors of a parsed header. INVALID_ARGUMENT if the buffers'
// `sizes` are not what dtypes and shapes say.
absl::Status AllocateTensors(absl::Span<const uint64_t> sizes,
                             WireMessage& message);

// Where the transport reads the tensors to. Each buffer owns `message`.
std::vector<transport::MutableBuffer> BuffersOf(
    const std::shared_ptr<WireMessage>& message);

// To be called when the bytes have come: a bool is 0 or 1.
void NormaliseTensors(WireMessage& message);

// Writes tensor headers into `message` and turns it into bytes to send. The
// tensors must not change until they are sent.
transport::Message Serialize(WireMessage& message);

// Why a tensor cannot travel, or "".
std::string Untransportable(const at::Tensor& tensor);

}  // namespace disttrain::rpc::internal
