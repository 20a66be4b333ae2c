// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/wire_message.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "c10/core/ScalarType.h"
#include "fmt/format.h"
#include "google/protobuf/io/coded_stream.h"

namespace disttrain::rpc::internal {
namespace {

// Names of dtypes that travel; their numbers are c10's.
bool IsTransportable(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kInt:
    case at::kLong:
    case at::kHalf:
    case at::kFloat:
    case at::kDouble:
    case at::kComplexHalf:
    case at::kComplexFloat:
    case at::kComplexDouble:
    case at::kBool:
    case at::kBFloat16:
    case at::ScalarType::Float8_e5m2:
    case at::ScalarType::Float8_e4m3fn:
    case at::ScalarType::Float8_e5m2fnuz:
    case at::ScalarType::Float8_e4m3fnuz:
    case at::ScalarType::UInt16:
    case at::ScalarType::UInt32:
    case at::ScalarType::UInt64:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<uint64_t> BytesOf(const v1::TensorHeader& tensor) {
  if (tensor.dtype() < 0 || tensor.dtype() > 127 ||
      !IsTransportable(static_cast<at::ScalarType>(tensor.dtype()))) {
    return absl::InvalidArgumentError(
        fmt::format("tensor of unknown dtype {}", tensor.dtype()));
  }
  if (tensor.sizes_size() > kMaxDimensions) {
    return absl::InvalidArgumentError(
        fmt::format("tensor with {} dimensions, at most {} are allowed",
                    tensor.sizes_size(), kMaxDimensions));
  }
  int64_t bytes = static_cast<int64_t>(
      c10::elementSize(static_cast<at::ScalarType>(tensor.dtype())));
  // Zero anywhere does not excuse the others: strides are products too.
  int64_t extent = bytes;
  for (const int64_t size : tensor.sizes()) {
    if (size < 0 ||
        __builtin_mul_overflow(extent, size == 0 ? 1 : size, &extent)) {
      return absl::InvalidArgumentError(
          fmt::format("tensor size {} is negative or overflows", size));
    }
    bytes = size == 0 ? 0 : bytes;
  }
  return bytes == 0 ? 0 : static_cast<uint64_t>(extent);
}

// Fresh memory is made page by page as it is first written: for a large tensor
// that costs as much as to receive it. A hint; where the kernel does not take
// it, nothing is lost.
void AdviseHugePages(void* data, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (begin >= end) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

absl::Status CheckHeader(const v1::RpcHeader& header) {
  if (header.kind_case() == v1::RpcHeader::KIND_NOT_SET) {
    return absl::InvalidArgumentError("header without a kind");
  }
  if (header.tensors_size() > kMaxTensors) {
    return absl::InvalidArgumentError(
        fmt::format("{} tensors in one message, at most {} are allowed",
                    header.tensors_size(), kMaxTensors));
  }
  if (header.references_size() > kMaxReferences) {
    return absl::InvalidArgumentError(
        fmt::format("{} references in one message, at most {} are allowed",
                    header.references_size(), kMaxReferences));
  }
  if (header.call().arguments_size() > kMaxArguments) {
    return absl::InvalidArgumentError(
        fmt::format("{} arguments, at most {} are allowed",
                    header.call().arguments_size(), kMaxArguments));
  }
  return absl::OkStatus();
}

}  // namespace

WireMessage::WireMessage()
    : arena(first_block, sizeof(first_block)),
      header(google::protobuf::Arena::CreateMessage<v1::RpcHeader>(&arena)) {}

absl::StatusOr<std::shared_ptr<WireMessage>> ParseHeader(
    std::string_view header) {
  if (header.size() > size_t{std::numeric_limits<int>::max()}) {
    return absl::InvalidArgumentError("header above 2 GiB");
  }
  auto message = std::make_shared<WireMessage>();
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const uint8_t*>(header.data()),
      static_cast<int>(header.size()));
  // A list is two levels: Value and ValueList.
  input.SetRecursionLimit(2 * kMaxDepth + 4);
  if (!message->header->ParseFromCodedStream(&input) ||
      !input.ConsumedEntireMessage()) {
    return absl::InvalidArgumentError(
        fmt::format("header of {} bytes is no RpcHeader or nests deeper than "
                    "{} lists",
                    header.size(), kMaxDepth));
  }
  if (absl::Status status = CheckHeader(*message->header); !status.ok()) {
    return status;
  }
  return message;
}

absl::Status AllocateTensors(absl::Span<const uint64_t> sizes,
                             WireMessage& message) {
  size_t buffer = 0;
  for (const v1::TensorHeader& tensor : message.header->tensors()) {
    if (tensor.undefined()) continue;
    const absl::StatusOr<uint64_t> bytes = BytesOf(tensor);
    if (!bytes.ok()) return bytes.status();
    if (buffer >= sizes.size() || sizes[buffer] != *bytes) {
      return absl::InvalidArgumentError(fmt::format(
          "tensor {} needs {} bytes, its buffer has {}", buffer, *bytes,
          buffer < sizes.size() ? fmt::to_string(sizes[buffer]) : "not come"));
    }
    ++buffer;
  }
  if (buffer != sizes.size()) {
    return absl::InvalidArgumentError(
        fmt::format("{} buffers for {} tensors", sizes.size(), buffer));
  }
  message.tensors.reserve(static_cast<size_t>(message.header->tensors_size()));
  for (const v1::TensorHeader& tensor : message.header->tensors()) {
    if (tensor.undefined()) {
      message.tensors.emplace_back();
      continue;
    }
    const at::IntArrayRef shape(tensor.sizes().data(),
                                static_cast<size_t>(tensor.sizes_size()));
    message.tensors.push_back(
        at::empty(shape, at::TensorOptions().dtype(
                             static_cast<at::ScalarType>(tensor.dtype()))));
    AdviseHugePages(message.tensors.back().data_ptr(),
                    message.tensors.back().nbytes());
  }
  return absl::OkStatus();
}

std::vector<transport::MutableBuffer> BuffersOf(
    const std::shared_ptr<WireMessage>& message) {
  std::vector<transport::MutableBuffer> buffers;
  buffers.reserve(message->tensors.size());
  for (const at::Tensor& tensor : message->tensors) {
    if (!tensor.defined()) continue;
    buffers.push_back({.data = tensor.data_ptr(),
                       .size = static_cast<size_t>(tensor.nbytes()),
                       .owner = message});
  }
  return buffers;
}

void NormaliseTensors(WireMessage& message) {
  for (const at::Tensor& tensor : message.tensors) {
    if (!tensor.defined() || tensor.scalar_type() != at::kBool) continue;
    auto* bytes = static_cast<uint8_t*>(tensor.data_ptr());
    for (int64_t i = 0; i < tensor.numel(); ++i) bytes[i] = bytes[i] != 0;
  }
}

transport::Message Serialize(WireMessage& message) {
  transport::Message out;
  if (!message.tensors.empty()) {
    auto kept = std::make_shared<std::vector<at::Tensor>>();
    kept->reserve(message.tensors.size());
    out.buffers.reserve(message.tensors.size());
    for (const at::Tensor& tensor : message.tensors) {
      v1::TensorHeader* header = message.header->add_tensors();
      if (!tensor.defined()) {
        header->set_undefined(true);
        continue;
      }
      header->set_dtype(static_cast<int>(tensor.scalar_type()));
      for (const int64_t size : tensor.sizes()) header->add_sizes(size);
      kept->push_back(
          tensor.detach().resolve_conj().resolve_neg().contiguous());
      out.buffers.push_back({.data = kept->back().data_ptr(),
                             .size = static_cast<size_t>(kept->back().nbytes()),
                             .owner = kept});
    }
  }
  message.header->SerializeToString(&out.header);
  return out;
}

std::string Untransportable(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  if (!tensor.device().is_cpu()) {
    return fmt::format("tensor is on {}, only CPU tensors travel: call .cpu()",
                       tensor.device().str());
  }
  if (tensor.layout() != at::kStrided) {
    return "tensor is not strided: call .to_dense()";
  }
  if (!IsTransportable(tensor.scalar_type())) {
    return fmt::format("a tensor of dtype {} cannot travel",
                       c10::toString(tensor.scalar_type()));
  }
  if (tensor.dim() > kMaxDimensions) {
    return fmt::format("tensor with {} dimensions, at most {} travel",
                       tensor.dim(), kMaxDimensions);
  }
  return "";
}

}  // namespace disttrain::rpc::internal
