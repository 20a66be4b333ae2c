// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/value.h"

#include <cmath>

#include "disttrain/v1/rpc.pb.h"
#include "fmt/format.h"
#include "worker/rpc/wire_message.h"

namespace disttrain::rpc::internal {
namespace {

std::string_view KindName(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kNothing:
      return "nothing";
    case v1::Value::kBoolean:
      return "bool";
    case v1::Value::kInteger:
    case v1::Value::kUnsignedInteger:
      return "integer";
    case v1::Value::kNumber:
      return "number";
    case v1::Value::kText:
      return "string";
    case v1::Value::kTensor:
      return "Tensor";
    case v1::Value::kList:
      return "list";
    case v1::Value::kIntegers:
      return "list of integers";
    case v1::Value::kNumbers:
      return "list of numbers";
    case v1::Value::kReference:
      return "RRef";
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return "no value";
}

// Integers up to here are doubles without loss.
constexpr int64_t kExact = int64_t{1} << 53;

}  // namespace

void Writer::Nothing() const { value_->mutable_nothing(); }
void Writer::Boolean(bool value) const { value_->set_boolean(value); }
void Writer::Integer(int64_t value) const { value_->set_integer(value); }
void Writer::Number(double value) const { value_->set_number(value); }

void Writer::Unsigned(uint64_t value) const {
  if (std::in_range<int64_t>(value)) {
    value_->set_integer(static_cast<int64_t>(value));
  } else {
    value_->set_unsigned_integer(value);
  }
}

void Writer::Text(std::string_view value) const {
  value_->set_text(value.data(), value.size());
}

void Writer::Tensor(const at::Tensor& value) const {
  if (std::string why = Untransportable(value); !why.empty()) {
    throw ValueError(why);
  }
  if (message_->tensors.size() >= size_t{kMaxTensors}) {
    throw ValueError(
        fmt::format("more than {} tensors in one message", kMaxTensors));
  }
  value_->set_tensor(static_cast<uint32_t>(message_->tensors.size()));
  message_->tensors.push_back(value);
}

void Writer::Reference(const std::shared_ptr<ReferenceState>& value) const {
  if (value == nullptr) throw ValueError("RRef is empty");
  if (message_->references.size() >= size_t{kMaxReferences}) {
    throw ValueError(
        fmt::format("more than {} references in one message", kMaxReferences));
  }
  value_->set_reference(static_cast<uint32_t>(message_->references.size()));
  message_->references.push_back(value);
}

void Writer::List() const {
  if (depth_ >= kMaxDepth) {
    throw ValueError(fmt::format("lists nest deeper than {}", kMaxDepth));
  }
  value_->mutable_list();
}

Writer Writer::Element() const {
  return Writer(value_->mutable_list()->add_values(), message_, depth_ + 1);
}

void Writer::Integers() const { value_->mutable_integers(); }
void Writer::AddInteger(int64_t value) const {
  value_->mutable_integers()->add_values(value);
}
void Writer::Numbers() const { value_->mutable_numbers(); }
void Writer::AddNumber(double value) const {
  value_->mutable_numbers()->add_values(value);
}

void Reader::Mismatch(std::string_view expected) const {
  throw ValueError(
      fmt::format("expected {}, got {}", expected, KindName(*value_)));
}

bool Reader::IsNothing() const { return value_->has_nothing(); }

void Reader::Nothing() const {
  if (!value_->has_nothing()) Mismatch("void");
}

bool Reader::Boolean() const {
  if (!value_->has_boolean()) Mismatch("bool");
  return value_->boolean();
}

int64_t Reader::Integer(int64_t min, int64_t max, std::string_view type) const {
  if (value_->has_unsigned_integer()) {
    throw ValueError(
        fmt::format("expected {}, got {}", type, value_->unsigned_integer()));
  }
  if (!value_->has_integer()) Mismatch(type);
  const int64_t value = value_->integer();
  if (value < min || value > max) {
    throw ValueError(fmt::format("expected {}, got {}", type, value));
  }
  return value;
}

uint64_t Reader::Unsigned(uint64_t max, std::string_view type) const {
  uint64_t value = 0;
  if (value_->has_unsigned_integer()) {
    value = value_->unsigned_integer();
  } else {
    if (!value_->has_integer()) Mismatch(type);
    if (value_->integer() < 0) {
      throw ValueError(
          fmt::format("expected {}, got {}", type, value_->integer()));
    }
    value = static_cast<uint64_t>(value_->integer());
  }
  if (value > max) {
    throw ValueError(fmt::format("expected {}, got {}", type, value));
  }
  return value;
}

double Reader::Number() const {
  if (value_->has_integer() && value_->integer() >= -kExact &&
      value_->integer() <= kExact) {
    return static_cast<double>(value_->integer());
  }
  if (!value_->has_number()) Mismatch("number");
  return value_->number();
}

std::string_view Reader::Text() const {
  if (!value_->has_text()) Mismatch("string");
  return value_->text();
}

const at::Tensor& Reader::Tensor() const {
  if (!value_->has_tensor()) Mismatch("Tensor");
  if (value_->tensor() >= message_->tensors.size()) {
    throw ValueError(fmt::format("names tensor {} of {}", value_->tensor(),
                                 message_->tensors.size()));
  }
  return message_->tensors[value_->tensor()];
}

const std::shared_ptr<ReferenceState>& Reader::Reference(
    std::string_view class_name) const {
  if (!value_->has_reference()) {
    Mismatch(fmt::format("RRef<{}>", class_name));
  }
  if (value_->reference() >= message_->references.size()) {
    throw ValueError(fmt::format("names reference {} of {}",
                                 value_->reference(),
                                 message_->references.size()));
  }
  const std::shared_ptr<ReferenceState>& state =
      message_->references[value_->reference()];
  if (state->class_name != class_name) {
    throw ValueError(fmt::format("expected RRef<{}>, got RRef<{}>", class_name,
                                 state->class_name));
  }
  return state;
}

size_t Reader::ListSize() const {
  switch (value_->kind_case()) {
    case v1::Value::kList:
      return static_cast<size_t>(value_->list().values_size());
    case v1::Value::kIntegers:
      return static_cast<size_t>(value_->integers().values_size());
    case v1::Value::kNumbers:
      return static_cast<size_t>(value_->numbers().values_size());
    default:
      Mismatch("list");
  }
}

Reader Reader::Element(size_t index) const {
  if (!value_->has_list()) Mismatch("list of values");
  return Reader(&value_->list().values(static_cast<int>(index)), message_);
}

const int64_t* Reader::Integers() const {
  return value_->has_integers() ? value_->integers().values().data() : nullptr;
}

const double* Reader::Numbers() const {
  return value_->has_numbers() ? value_->numbers().values().data() : nullptr;
}

}  // namespace disttrain::rpc::internal
