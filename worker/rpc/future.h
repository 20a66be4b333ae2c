// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/rpc/future_state.h"
#include "worker/rpc/value.h"

namespace disttrain::rpc {

template <class R>
class Future;

namespace internal {

template <class R>
class State final : public FutureState {
 public:
  bool Set(Stored<R> value) {
    return Resolve([&] { value_.emplace(std::move(value)); });
  }
  // After ready() without error().
  Stored<R>& value() { return *value_; }

  void DecodeResult(const Reader& reader) override {
    if constexpr (Transportable<Stored<R>>) {
      Set(Codec<Stored<R>>::Decode(reader));
    }
  }

 private:
  std::optional<Stored<R>> value_;  // written once, before ready()
};

template <class T>
struct FutureValue {
  using type = T;
  static constexpr bool kIsFuture = false;
};
template <class T>
struct FutureValue<Future<T>> {
  using type = T;
  static constexpr bool kIsFuture = true;
};

}  // namespace internal

// A result that is not there yet. A copyable handle; all copies see the same
// result.
//
// Threads: thread-safe.
// Errors: what the call met comes out of Get(): rpc::Error and its subclasses
// for calls, any exception that a continuation threw.
template <class R>
class Future {
 public:
  using State = internal::State<R>;

  Future() = default;  // valid() is false; nothing else may be called
  explicit Future(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool valid() const { return state_ != nullptr; }
  bool Ready() const { return state_->ready(); }

  // Waits for the result: at most until the call's deadline and that of the
  // call which this thread serves. Throws the error. Meanwhile the thread reads
  // the network for its agent, so that a reply needs no other thread.
  R Get() const& {
    state_->WaitOrThrow();
    if constexpr (!std::is_void_v<R>) return state_->value();
  }
  // Moves the result out if no other handle is left.
  R Get() && {
    const std::shared_ptr<State> state = std::move(state_);
    state->WaitOrThrow();
    if constexpr (!std::is_void_v<R>) {
      if (state.use_count() == 1) return std::move(state->value());
      return state->value();
    }
  }

  // True if it is resolved (error or not) by `deadline`; throws nothing.
  bool Wait(absl::Time deadline) const { return state_->Wait(deadline); }

  // Runs `f` with the value (or, if `f` takes a Future<R>, with this future,
  // error or not) and gives the future of what it returns; if that is a Future
  // itself, of its value. Without `f` taking the future an error skips `f`.
  //
  // Threads: `f` runs on the thread that resolves the future, which for a call
  // is one of the agent's; or at once on this one if it is resolved already.
  // It may block and make calls. It never runs on a thread that waits in Get.
  template <class F>
  auto Then(F f) const;

  // Asks the callee (and what it has called on behalf of this call) to stop,
  // and fails with Cancelled at once. Does nothing if it is resolved.
  void Cancel(const std::string& reason = "cancelled by the caller") const {
    state_->Cancel(reason);
  }

  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// The other end of a Future that this process resolves itself. Copyable; when
// the last copy goes unresolved, the future fails with Cancelled.
//
// Threads: thread-safe. Continuations run inside Set and SetError.
template <class R>
class Promise {
 public:
  Promise() : held_(std::make_shared<Held>()) {}

  Future<R> GetFuture() const { return Future<R>(held_->state); }

  // False if it was resolved (or cancelled) before.
  bool Set(internal::Stored<R> value = {}) const {
    return held_->state->Set(std::move(value));
  }
  bool SetError(std::exception_ptr error) const {
    return held_->state->Fail(std::move(error));
  }
  template <class E>
  requires std::derived_from<E, std::exception>
  bool SetError(E error) const {
    return SetError(std::make_exception_ptr(std::move(error)));
  }

  // `f` runs when somebody cancels the future. Replaces an earlier one.
  void OnCancel(internal::Task f) const {
    held_->state->SetCanceller(std::move(f));
  }
  bool resolved() const { return held_->state->ready(); }

 private:
  struct Held {
    std::shared_ptr<internal::State<R>> state =
        std::make_shared<internal::State<R>>();
    ~Held() { state->Cancel("its promise was dropped without a result"); }
  };
  std::shared_ptr<Held> held_;
};

namespace internal {

// Resolves `next` with what `produce` returns or throws; follows a Future.
template <class R2, class Produce>
void ResolveWith(const std::shared_ptr<State<R2>>& next, Produce produce) {
  using Out = std::invoke_result_t<Produce>;
  try {
    if constexpr (FutureValue<Out>::kIsFuture) {
      const auto inner = produce().state();
      next->SetCanceller([inner] { inner->Cancel("cancelled by its user"); });
      inner->OnReady([next, inner] {
        if (inner->error() != nullptr) {
          next->Fail(inner->error());
        } else {
          next->Set(inner->value());
        }
      });
    } else if constexpr (std::is_void_v<Out>) {
      produce();
      next->Set({});
    } else {
      next->Set(produce());
    }
  } catch (...) {
    next->Fail(std::current_exception());
  }
}

template <class R, class F>
auto CallWith(F& f, State<R>& state) {
  if constexpr (std::is_void_v<R>) {
    return f();
  } else {
    return f(state.value());
  }
}

}  // namespace internal

template <class R>
template <class F>
auto Future<R>::Then(F f) const {
  constexpr bool kTakesFuture = std::is_invocable_v<F&, Future<R>>;
  const std::shared_ptr<State> state = state_;
  const auto run = [](F& function, const std::shared_ptr<State>& from) {
    if constexpr (kTakesFuture) {
      return function(Future<R>(from));
    } else {
      return internal::CallWith<R>(function, *from);
    }
  };
  using Out = decltype(run(f, state));
  using R2 = typename internal::FutureValue<Out>::type;
  auto next = std::make_shared<internal::State<R2>>();
  next->SetCanceller([weak = std::weak_ptr<State>(state)] {
    if (const auto from = weak.lock()) from->Cancel("cancelled by its user");
  });
  state->OnReadyUserCode([next, state, run, f = std::move(f)]() mutable {
    if (!kTakesFuture && state->error() != nullptr) {
      next->Fail(state->error());
      return;
    }
    internal::ResolveWith<R2>(next, [&] { return run(f, state); });
  });
  return Future<R2>(std::move(next));
}

// The values of all, in order; fails as soon as one fails. Cancelling it
// cancels all.
template <class R>
auto WhenAll(const std::vector<Future<R>>& futures) {
  using All = std::conditional_t<std::is_void_v<R>, void,
                                 std::vector<internal::Stored<R>>>;
  struct Gathered {
    absl::Mutex mu;
    size_t left ABSL_GUARDED_BY(mu);
  };
  auto next = std::make_shared<internal::State<All>>();
  auto gathered = std::make_shared<Gathered>();
  {
    absl::MutexLock lock(&gathered->mu);
    gathered->left = futures.size() + 1;
  }
  const auto one_done = [next, gathered, futures] {
    {
      absl::MutexLock lock(&gathered->mu);
      if (--gathered->left != 0) return;
    }
    if constexpr (std::is_void_v<R>) {
      next->Set({});
    } else {
      std::vector<internal::Stored<R>> values;
      values.reserve(futures.size());
      for (const Future<R>& future : futures) {
        if (future.state()->error() != nullptr) return;  // next has failed
        values.push_back(future.state()->value());
      }
      next->Set(std::move(values));
    }
  };
  next->SetCanceller([futures] {
    for (const Future<R>& future : futures) future.Cancel();
  });
  for (const Future<R>& future : futures) {
    const auto& state = future.state();
    state->OnReady([next, raw = state.get(), one_done] {
      if (raw->error() != nullptr) next->Fail(raw->error());
      one_done();
    });
  }
  one_done();
  return Future<All>(std::move(next));
}

}  // namespace disttrain::rpc
