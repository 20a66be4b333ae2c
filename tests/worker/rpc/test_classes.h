// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "worker/rpc/rpc.h"

// Classes that the tests create and call on other ranks.
namespace disttrain::rpc::testing {

class Counter {
 public:
  explicit Counter(int64_t start) : value_(start) { ++alive; }
  ~Counter() { --alive; }
  Counter(const Counter&) = delete;

  int64_t Add(int64_t amount) { return value_ += amount; }
  int64_t Get() const noexcept { return value_; }
  void Reset() { value_ = 0; }

  static inline std::atomic<int> alive = 0;

 private:
  std::atomic<int64_t> value_;
};

class Echo {
 public:
  at::Tensor Tensor(const at::Tensor& value) { return value; }
  std::vector<at::Tensor> Tensors(std::vector<at::Tensor> values) {
    return values;
  }
  uint8_t Byte(uint8_t value) { return value; }
  int64_t Long(int64_t value) { return value; }
  uint64_t Unsigned(uint64_t value) { return value; }
  bool Flag(bool value) { return value; }
  float Single(float value) { return value; }
  std::string Text(std::string value) { return value; }
  std::vector<int32_t> Ints(const std::vector<int32_t>& values) {
    return values;
  }
  std::vector<double> Doubles(std::vector<double> values) { return values; }
  std::vector<std::vector<std::string>> Nested(
      std::vector<std::vector<std::string>> values) {
    return values;
  }
  std::optional<std::string> Maybe(std::optional<std::string> value) {
    return value;
  }
  std::tuple<int64_t, std::string, bool> Triple(
      std::tuple<int64_t, std::string, bool> value) {
    return value;
  }
  std::pair<double, std::vector<bool>> Pair(
      std::pair<double, std::vector<bool>> value) {
    return value;
  }
  void Nothing() {}
  void Unlisted() {}
};

class Thrower {
 public:
  Thrower() = default;
  explicit Thrower(const std::string& why) { throw std::runtime_error(why); }

  void Runtime(std::string what) { throw std::runtime_error(what); }
  void Torch() { TORCH_CHECK(false, "shapes do not match"); }
  void Unknown() { throw 7; }  // NOLINT
};

// Has a constructor of many types.
class Mixed {
 public:
  Mixed(const at::Tensor& tensor, const std::string& text, double number,
        std::vector<int64_t> list, RRef<Counter> counter)
      : sum_(static_cast<double>(tensor.numel()) + number +
             static_cast<double>(text.size() + list.size()) +
             static_cast<double>(counter.Sync(&Counter::Get))) {}
  double Sum() { return sum_; }

 private:
  double sum_;
};

// Waits inside methods until somebody opens it.
class Gate {
 public:
  explicit Gate(int64_t id) : id_(id) {}

  int64_t Pass() {
    absl::MutexLock lock(&mu_);
    ++waiting_;
    const auto done = [this] { return open_ || CallCancelled(); };
    while (!done()) {
      mu_.AwaitWithTimeout(absl::Condition(&open_), absl::Milliseconds(5));
    }
    --waiting_;
    if (!open_) ++cancelled_;
    return id_;
  }
  void Open() {
    absl::MutexLock lock(&mu_);
    open_ = true;
  }
  int64_t Waiting() {
    absl::MutexLock lock(&mu_);
    return waiting_;
  }
  int64_t Cancelled() {
    absl::MutexLock lock(&mu_);
    return cancelled_;
  }
  // Resolves when Open is called, and holds no thread meanwhile.
  Future<int64_t> PassLater() {
    absl::MutexLock lock(&mu_);
    promises_.emplace_back();
    return promises_.back().GetFuture();
  }
  int64_t Deferred() {
    absl::MutexLock lock(&mu_);
    return static_cast<int64_t>(promises_.size());
  }
  int64_t OpenLater() {
    std::vector<Promise<int64_t>> promises;
    {
      absl::MutexLock lock(&mu_);
      promises.swap(promises_);
    }
    for (const auto& promise : promises) promise.Set(id_);
    return static_cast<int64_t>(promises.size());
  }

 private:
  const int64_t id_;
  absl::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  int64_t waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t cancelled_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Promise<int64_t>> promises_ ABSL_GUARDED_BY(mu_);
};

// Calls on behalf of its caller, and hands references on.
class Relay {
 public:
  int64_t AddThrough(RRef<Counter> counter, int64_t amount) {
    return counter.Sync(&Counter::Add, amount);
  }
  int64_t PassThrough(RRef<Gate> gate) { return gate.Sync(&Gate::Pass); }
  Future<int64_t> PassThroughLater(RRef<Gate> gate) {
    return gate.With({.timeout = absl::ZeroDuration()}).Async(&Gate::PassLater);
  }
  // A→B→A→…: the other relay calls back until `depth` is used up.
  int64_t PingPong(RRef<Relay> self, RRef<Relay> other, int64_t depth) {
    if (depth == 0) return 0;
    return 1 + other.Sync(&Relay::PingPong, other, self, depth - 1);
  }
  void Keep(RRef<Counter> counter) {
    absl::MutexLock lock(&mu_);
    kept_ = counter;
  }
  RRef<Counter> Give() {
    absl::MutexLock lock(&mu_);
    return kept_;
  }
  void Forget() {
    RRef<Counter> dropped;
    absl::MutexLock lock(&mu_);
    std::swap(dropped, kept_);
  }
  void ThrowThrough(RRef<Thrower> thrower) {
    thrower.Sync(&Thrower::Runtime, "deep inside");
  }
  // Microseconds that its caller left it.
  int64_t TimeLeft() {
    return absl::ToInt64Microseconds(CurrentCall().deadline - absl::Now());
  }
  int64_t CallerRank() { return CurrentCall().caller.rank; }

 private:
  absl::Mutex mu_;
  RRef<Counter> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::rpc::testing

DISTTRAIN_REMOTE(disttrain::rpc::testing::Counter, Add, Get, Reset);
DISTTRAIN_REMOTE(disttrain::rpc::testing::Echo, Tensor, Tensors, Byte, Long,
                 Unsigned, Flag, Single, Text, Ints, Doubles, Nested, Maybe,
                 Triple, Pair, Nothing);
DISTTRAIN_REMOTE(disttrain::rpc::testing::Thrower, Runtime, Torch, Unknown);
DISTTRAIN_REMOTE(disttrain::rpc::testing::Mixed, Sum);
DISTTRAIN_REMOTE(disttrain::rpc::testing::Gate, Pass, Open, Waiting, Cancelled,
                 PassLater, Deferred, OpenLater);
DISTTRAIN_REMOTE(disttrain::rpc::testing::Relay, AddThrough, PassThrough,
                 PassThroughLater, PingPong, Keep, Give, Forget, ThrowThrough,
                 TimeLeft, CallerRank);

namespace disttrain::rpc::testing {

inline Registry Everything() {
  return Remotes<Counter, Echo, Thrower, Mixed, Gate, Relay>();
}

}  // namespace disttrain::rpc::testing
