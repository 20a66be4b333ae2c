// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ATen/core/Tensor.h"

namespace disttrain::v1 {
class Value;
}

namespace disttrain::rpc {

namespace internal {
struct ReferenceState;
struct WireMessage;

// A value that is not what the reader expected, or cannot travel. The calling
// layer adds which argument of which method it was.
class ValueError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes one value into a message. Threads: one at a time.
class Writer {
 public:
  Writer(v1::Value* value, WireMessage* message, int depth = 0)
      : value_(value), message_(message), depth_(depth) {}

  void Nothing() const;
  void Boolean(bool value) const;
  void Integer(int64_t value) const;
  void Unsigned(uint64_t value) const;
  void Number(double value) const;
  void Text(std::string_view value) const;
  // The tensor itself is kept until it is sent: nothing is copied.
  // Throws ValueError: not on the CPU, not strided, quantised.
  void Tensor(const at::Tensor& value) const;
  void Reference(const std::shared_ptr<ReferenceState>& value) const;
  // A list: List() once, then Element() for each. Throws ValueError (too deep).
  void List() const;
  Writer Element() const;
  // Lists of numbers without a Value for each: AddX for each.
  void Integers() const;
  void AddInteger(int64_t value) const;
  void Numbers() const;
  void AddNumber(double value) const;

 private:
  v1::Value* value_;
  WireMessage* message_;
  int depth_;
};

// Reads one value; each function throws ValueError if it is something else
// ("expected bool, got string"). Threads: one at a time.
class Reader {
 public:
  Reader(const v1::Value* value, const WireMessage* message)
      : value_(value), message_(message) {}

  bool IsNothing() const;
  void Nothing() const;
  bool Boolean() const;
  // Throws too if it is outside [min, max].
  int64_t Integer(int64_t min, int64_t max, std::string_view type) const;
  uint64_t Unsigned(uint64_t max, std::string_view type) const;
  // An integer that a double holds exactly is a number as well.
  double Number() const;
  std::string_view Text() const;
  const at::Tensor& Tensor() const;
  const std::shared_ptr<ReferenceState>& Reference(
      std::string_view class_name) const;

  size_t ListSize() const;  // of any kind of list
  Reader Element(size_t index) const;
  // The numbers of a list written by Integers() or Numbers(); null if it is
  // a list of another kind.
  const int64_t* Integers() const;
  const double* Numbers() const;

 private:
  [[noreturn]] void Mismatch(std::string_view expected) const;

  const v1::Value* value_;
  const WireMessage* message_;
};

}  // namespace internal

// How a type travels. Specialise it for a type of your own in terms of a
// std::tuple (see AsTuple in the README), never with other wire forms.
//   static void Encode(const internal::Writer&, const T&);
//   static T Decode(const internal::Reader&);   // throws internal::ValueError
//   static std::string Name();                  // for messages
template <class T>
struct Codec;

// True for what may be an argument or a result.
template <class T>
concept Transportable = requires(const internal::Writer& writer,
                                 const internal::Reader& reader,
                                 const T& value) {
  Codec<T>::Encode(writer, value);
  { Codec<T>::Decode(reader) } -> std::same_as<T>;
};

template <>
struct Codec<std::monostate> {  // void
  static void Encode(const internal::Writer& writer, std::monostate) {
    writer.Nothing();
  }
  static std::monostate Decode(const internal::Reader& reader) {
    reader.Nothing();
    return {};
  }
  static std::string Name() { return "void"; }
};

template <>
struct Codec<bool> {
  static void Encode(const internal::Writer& writer, bool value) {
    writer.Boolean(value);
  }
  static bool Decode(const internal::Reader& reader) {
    return reader.Boolean();
  }
  static std::string Name() { return "bool"; }
};

template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) struct Codec<T> {
  using Limits = std::numeric_limits<T>;

  static void Encode(const internal::Writer& writer, T value) {
    if constexpr (std::is_unsigned_v<T>) {
      writer.Unsigned(value);
    } else {
      writer.Integer(value);
    }
  }
  static T Decode(const internal::Reader& reader) {
    if constexpr (std::is_unsigned_v<T>) {
      return static_cast<T>(reader.Unsigned(Limits::max(), Name()));
    } else {
      return static_cast<T>(
          reader.Integer(Limits::min(), Limits::max(), Name()));
    }
  }
  static std::string Name() {
    return (std::is_unsigned_v<T> ? "uint" : "int") +
           std::to_string(8 * sizeof(T));
  }
};

template <class T>
requires std::is_enum_v<T>
struct Codec<T> {
  using Number = std::underlying_type_t<T>;
  static void Encode(const internal::Writer& writer, T value) {
    Codec<Number>::Encode(writer, static_cast<Number>(value));
  }
  static T Decode(const internal::Reader& reader) {
    return static_cast<T>(Codec<Number>::Decode(reader));
  }
  static std::string Name() { return Codec<Number>::Name(); }
};

template <class T>
requires std::is_floating_point_v<T>
struct Codec<T> {
  static void Encode(const internal::Writer& writer, T value) {
    writer.Number(static_cast<double>(value));
  }
  static T Decode(const internal::Reader& reader) {
    return static_cast<T>(reader.Number());
  }
  static std::string Name() { return sizeof(T) == 4 ? "float" : "double"; }
};

template <>
struct Codec<std::string> {
  static void Encode(const internal::Writer& writer, const std::string& value) {
    writer.Text(value);
  }
  static std::string Decode(const internal::Reader& reader) {
    return std::string(reader.Text());
  }
  static std::string Name() { return "string"; }
};

template <>
struct Codec<at::Tensor> {
  static void Encode(const internal::Writer& writer, const at::Tensor& value) {
    writer.Tensor(value);
  }
  static at::Tensor Decode(const internal::Reader& reader) {
    return reader.Tensor();
  }
  static std::string Name() { return "Tensor"; }
};

template <class T>
struct Codec<std::optional<T>> {
  static void Encode(const internal::Writer& writer,
                     const std::optional<T>& value) {
    // A list of none or one, so that optionals nest.
    writer.List();
    if (value.has_value()) Codec<T>::Encode(writer.Element(), *value);
  }
  static std::optional<T> Decode(const internal::Reader& reader) {
    if (reader.ListSize() > 1) {
      throw internal::ValueError("expected " + Name() + ", got a longer list");
    }
    if (reader.ListSize() == 0) return std::nullopt;
    return Codec<T>::Decode(reader.Element(0));
  }
  static std::string Name() { return "optional<" + Codec<T>::Name() + ">"; }
};

template <class T>
struct Codec<std::vector<T>> {
  // uint64_t goes value by value: it may be above int64_t.
  static constexpr bool kIntegers = std::is_integral_v<T> &&
                                    !std::is_same_v<T, bool> &&
                                    (std::is_signed_v<T> || sizeof(T) < 8);
  static constexpr bool kNumbers = std::is_floating_point_v<T>;

  static void Encode(const internal::Writer& writer,
                     const std::vector<T>& values) {
    if constexpr (kIntegers) {
      writer.Integers();
      for (const T value : values) writer.AddInteger(value);
    } else if constexpr (kNumbers) {
      writer.Numbers();
      for (const T value : values) {
        writer.AddNumber(static_cast<double>(value));
      }
    } else {
      writer.List();
      for (const auto& value : values) {
        Codec<T>::Encode(writer.Element(), value);
      }
    }
  }

  static std::vector<T> Decode(const internal::Reader& reader) {
    std::vector<T> values;
    const size_t size = reader.ListSize();
    values.reserve(size);
    if constexpr (kIntegers) {
      if (const int64_t* numbers = reader.Integers()) {
        for (size_t i = 0; i < size; ++i) values.push_back(Narrow(numbers[i]));
        return values;
      }
    }
    if constexpr (kNumbers) {
      if (const double* numbers = reader.Numbers()) {
        for (size_t i = 0; i < size; ++i) {
          values.push_back(static_cast<T>(numbers[i]));
        }
        return values;
      }
    }
    for (size_t i = 0; i < size; ++i) {
      values.push_back(Codec<T>::Decode(reader.Element(i)));
    }
    return values;
  }

  static std::string Name() { return "vector<" + Codec<T>::Name() + ">"; }

 private:
  static T Narrow(int64_t value) {
    if (!std::in_range<T>(value)) {
      throw internal::ValueError("expected " + Codec<T>::Name() + ", got " +
                                 std::to_string(value));
    }
    return static_cast<T>(value);
  }
};

template <class... T>
struct Codec<std::tuple<T...>> {
  static void Encode(const internal::Writer& writer,
                     const std::tuple<T...>& value) {
    writer.List();
    std::apply(
        [&](const T&... part) {
          (Codec<T>::Encode(writer.Element(), part), ...);
        },
        value);
  }
  static std::tuple<T...> Decode(const internal::Reader& reader) {
    if (reader.ListSize() != sizeof...(T)) {
      throw internal::ValueError("expected " + Name() + ", got a list of " +
                                 std::to_string(reader.ListSize()));
    }
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>{Codec<T>::Decode(reader.Element(I))...};
    }
    (std::index_sequence_for<T...>());
  }
  static std::string Name() {
    std::string names;
    ((names += (names.empty() ? "" : ", ") + Codec<T>::Name()), ...);
    return "tuple<" + names + ">";
  }
};

template <class A, class B>
struct Codec<std::pair<A, B>> {
  static void Encode(const internal::Writer& writer,
                     const std::pair<A, B>& value) {
    writer.List();
    Codec<A>::Encode(writer.Element(), value.first);
    Codec<B>::Encode(writer.Element(), value.second);
  }
  static std::pair<A, B> Decode(const internal::Reader& reader) {
    auto [first, second] = Codec<std::tuple<A, B>>::Decode(reader);
    return {std::move(first), std::move(second)};
  }
  static std::string Name() {
    return "pair<" + Codec<A>::Name() + ", " + Codec<B>::Name() + ">";
  }
};

namespace internal {

// The type under which an argument travels: no reference, no const, and
// text as std::string.
template <class T>
using Wire = std::conditional_t<std::is_convertible_v<T, std::string_view>,
                                std::string, std::remove_cvref_t<T>>;

// void travels as std::monostate.
template <class T>
using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

}  // namespace internal
}  // namespace disttrain::rpc
