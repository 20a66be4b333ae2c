// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/time/time.h"
#include "worker/rpc/future_state.h"
#include "worker/rpc/object_id.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/reference_state.h"
#include "worker/rpc/registry.h"
#include "worker/rpc/value.h"

namespace disttrain::rpc {

// How a call is made.
struct CallOptions {
  // From the call to its result; zero: no deadline. Absent: the agent's
  // default (60 s). A call made by a method has at most what is left of the
  // call that it serves.
  std::optional<absl::Duration> timeout;
};

namespace internal {

class Core;
template <class R>
class State;

// The thread's agent; null, or std::logic_error, if it has none.
std::shared_ptr<Core> CurrentCoreOrNull();
std::shared_ptr<Core> CurrentCore();

// The rank's current life. Throws std::out_of_range if there is none.
Peer PeerOf(const Core& core, int rank);
// The same, unless it is lost or has left. Nothing: it is.
std::optional<Peer> LivingPeer(const Core& core, int rank);
// Resolved when some rank comes back; fails when the agent ends.
std::shared_ptr<State<void>> NextReturn(const std::shared_ptr<Core>& core);
const Peer& SelfOf(const Core& core);
std::shared_ptr<ReferenceState> OwnObject(const std::shared_ptr<Core>& core,
                                          std::shared_ptr<void> value,
                                          const ClassEntry& entry);

// One call being written. Used once, by one thread.
class Request {
 public:
  // A method of an object, which lives at least until the reply; `label` and
  // `method` are static storage.
  Request(std::shared_ptr<Core> core, std::shared_ptr<ReferenceState> target,
          std::string_view label, std::string_view method);
  // A new object of `class_name` (static storage) at `to`.
  Request(std::shared_ptr<Core> core, const Peer& to,
          std::string_view class_name);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Adds the next argument. Throws InvalidArgument if it cannot travel.
  template <class T>
  void Add(const T& value) {
    try {
      Codec<T>::Encode(Argument(), value);
    } catch (const ValueError& error) {
      Unsendable(error);
    }
  }

  // The same, converted to what the method takes. Throws InvalidArgument if an
  // integer does not fit.
  template <class P, class A>
  void AddAs(const A& value) {
    static_assert(!(std::is_floating_point_v<A> && std::is_integral_v<P>),
                  "a floating-point argument for an integer parameter");
    if constexpr (std::is_same_v<A, P>) {
      Add<P>(value);
    } else {
      if constexpr (kIsInteger<A> && kIsInteger<P>) {
        if (!std::in_range<P>(value)) {
          Unsendable(ValueError("expected " + Codec<P>::Name() + ", got " +
                                std::to_string(value)));
        }
      }
      Add<P>(static_cast<P>(value));
    }
  }

  // `result` gets the outcome, whatever happens. With `synchronous` the caller
  // waits for it next; a call to oneself then runs at once, on this thread.
  void Start(const std::shared_ptr<FutureState>& result,
             const CallOptions& options, bool synchronous);

 private:
  template <class T>
  static constexpr bool kIsInteger =
      std::is_integral_v<T> && !std::is_same_v<T, bool> &&
      !std::is_same_v<T, char>;

  Writer Argument();
  [[noreturn]] void Unsendable(const ValueError& error) const;

  std::shared_ptr<Core> core_;
  std::shared_ptr<ReferenceState> target_;  // null for a creation
  Peer to_;
  std::string_view label_;
  std::shared_ptr<WireMessage> message_;
};

// Throws UnknownMethod: the pointer is not in DISTTRAIN_REMOTE(class_name, …).
[[noreturn]] void ThrowUnlisted(const Peer& peer, std::string_view class_name,
                                const std::string& listed);
// Throws InvalidArgument / ReferenceLost about a reference.
[[noreturn]] void ThrowNotLocal(const ReferenceState& state);
[[noreturn]] void ThrowEmpty(std::string_view class_name);

}  // namespace internal
}  // namespace disttrain::rpc
