// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/rpc/call_recorder.h"
#include "worker/rpc/error.h"
#include "worker/rpc/future_state.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/value.h"

namespace disttrain::rpc::internal {

class Core;

// A failure that is ours, not the method's: becomes the reply as it is.
class CallRefused : public std::runtime_error {
 public:
  CallRefused(ErrorCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// One call of a peer (or of oneself) from its arrival to its reply.
//
// Threads: thread-safe; one thread runs the method.
class ServedCall : public std::enable_shared_from_this<ServedCall> {
 public:
  ServedCall(std::shared_ptr<Core> core, Peer caller,
             std::shared_ptr<WireMessage> request, bool local);

  // The call that this thread serves, or null.
  static ServedCall* Current();

  // Makes a call (or none) the thread's current one. Scopes nest.
  class Scope {
   public:
    explicit Scope(ServedCall* call);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ServedCall* previous_;
  };

  const Peer& caller() const { return caller_; }
  uint64_t call_id() const { return call_id_; }
  // Unique in this process, for telling nested calls apart.
  uint64_t serial() const { return serial_; }
  bool local() const { return local_; }
  absl::Time start() const { return start_; }
  absl::Time deadline() const { return deadline_; }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  const std::shared_ptr<WireMessage>& request() const { return request_; }
  const std::shared_ptr<Core>& core() const { return core_; }
  // "Observer.RunEpisode" as the request has it, for /debug/calls.
  std::string Label() const;
  // The same once it is known to exist here, else "unknown"; for metrics.
  std::string_view metric_label() const { return metric_label_; }
  void set_metric_label(std::string_view label) { metric_label_ = label; }

  std::unique_ptr<ServedRecord> record;

  // Around the method proper; AfterMethod at the latest when the scope of
  // the call ends, and only once.
  void BeforeMethod();
  void AfterMethod();

  // Makes cancelled() true, wakes what waits on behalf of this call, and
  // cancels the future that is to be its result.
  void Cancel(const std::string& reason);

  // While a thread of this call waits for `state` without lending itself.
  void AddWait(FutureState* state);
  void RemoveWait(FutureState* state);

  // Sends the result. Only the first Return or Fail counts.
  template <class R>
  void Return(const R& value) {
    const std::shared_ptr<WireMessage> reply = NewReply();
    try {
      Codec<R>::Encode(ResultOf(*reply), value);
    } catch (const ValueError& error) {
      throw ValueError(std::string("result: ") + error.what());
    }
    Reply(reply, ErrorCode::kOk);
  }

  void ReturnReference(const std::shared_ptr<ReferenceState>& reference);

  // Sends what `error` says: see error kinds in rpc.proto.
  void Fail(const std::exception_ptr& error);
  void Fail(ErrorCode code, const std::string& message,
            ErrorCode cause = ErrorCode::kRemoteException);

  // The reply leaves when `future` resolves; `send` then calls Return or Fail.
  void ReturnLater(const std::shared_ptr<FutureState>& future, Task send);

 private:
  std::shared_ptr<WireMessage> NewReply() const;
  static Writer ResultOf(WireMessage& reply);
  void Reply(const std::shared_ptr<WireMessage>& reply, ErrorCode outcome);

  const std::shared_ptr<Core> core_;
  const Peer caller_;
  const std::shared_ptr<WireMessage> request_;
  const bool local_;
  const uint64_t call_id_;
  const uint64_t serial_;
  const absl::Time start_;
  const absl::Time deadline_;
  std::string_view metric_label_ = "unknown";
  bool in_method_ = false;  // of the thread that runs it
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> replied_ = false;

  absl::Mutex mu_;
  std::vector<FutureState*> waits_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<FutureState> result_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::rpc::internal
