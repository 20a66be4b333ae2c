// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/barriers.h"
#include "worker/rendezvous/heartbeat_stream.h"
#include "worker/rendezvous/key_value.h"
#include "worker/rendezvous/roster.h"
#include "worker/rendezvous/waiting_calls.h"

namespace disttrain {

// The rendezvous service's one state: every request changes it under one lock,
// and what follows from the change (answers, events) is carried out after the
// lock is gone.
//
// The unary methods take what gRPC gave and return the reactor that gRPC wants:
// answered already, or waiting.
// Threads: thread-safe. No method blocks, except RunTimer and Close. Outlives
// the server: reactors hold it.
class Hub : public std::enable_shared_from_this<Hub> {
 public:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  explicit Hub(RosterOptions options);

  Reactor* Join(Context* context, const v1::JoinRequest& request,
                v1::JoinResponse* response);
  Reactor* ReportFailure(Context* context,
                         const v1::ReportFailureRequest& request,
                         v1::ReportFailureResponse* response);
  Reactor* Barrier(Context* context, const v1::BarrierRequest& request);
  Reactor* Finish(Context* context, const v1::FinishRequest& request);
  Reactor* Stop(Context* context, const v1::StopRequest& request);
  Reactor* GetProgress(Context* context, const v1::GetProgressRequest& request,
                       v1::Progress* response);

  Reactor* Set(Context* context, const v1::SetRequest& request);
  Reactor* Get(Context* context, const v1::GetRequest& request,
               v1::GetResponse* response);
  Reactor* Wait(Context* context, const v1::WaitRequest& request);
  Reactor* Check(Context* context, const v1::CheckRequest& request,
                 v1::CheckResponse* response);
  Reactor* Add(Context* context, const v1::AddRequest& request,
               v1::AddResponse* response);
  Reactor* CompareSet(Context* context, const v1::CompareSetRequest& request,
                      v1::CompareSetResponse* response);
  Reactor* Delete(Context* context, const v1::DeleteRequest& request,
                  v1::DeleteResponse* response);
  Reactor* CountKeys(Context* context, const v1::CountKeysRequest& request,
                     v1::CountKeysResponse* response);

  // From the streams. HeartbeatRead: false if the stream is ending, so that
  // nothing more need be read.
  bool HeartbeatRead(const std::shared_ptr<HeartbeatStream>& stream,
                     const v1::HeartbeatRequest& request);
  void HeartbeatEnded(const HeartbeatStream& stream);

  v1::Progress Progress();

  // Ends what is too late, until Close.
  void RunTimer();

  // Answers all that wait, ends all streams, and refuses what still comes.
  // Blocking: if the attempt has ended, until every rank that is left can hear
  // of it; at most until `deadline`.
  void Close(absl::Time deadline);

 private:
  // What is to be done once the lock is gone.
  struct Outbox {
    std::vector<std::pair<WaitingCall*, absl::Status>> answers;
    std::vector<std::shared_ptr<HeartbeatStream>> flushes;
    std::optional<v1::Failure> failure;
    void Deliver();
  };

  // Runs `act` (→ absl::Status) under the lock if `gate` (→ absl::Status, too)
  // lets the caller in, and answers at once.
  template <typename Gate, typename Act>
  Reactor* AnswerNow(Context* context, Gate gate, Act act);
  template <typename Act>
  Reactor* AnswerRank(Context* context, const v1::Caller& caller, Act act);

  WaitingCall* NewCall(WaitingCall::Kind kind, const v1::Caller& caller,
                       Context* context);
  Reactor* WaitForKeys(WaitingCall* call, int64_t timeout_ms);
  void CallCancelled(uint64_t ticket);

  // The caller is a rank, and no failure was broadcast.
  absl::Status CheckRank(const v1::Caller& caller) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckServing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Draws the consequences of whatever has changed.
  void Settle(Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAll(Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Expire(absl::Time now, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerBarriers(const Barriers::Answers& answers, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeySet(const std::string& key, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FillAnswer(WaitingCall* call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status LateStatus(const WaitingCall& call) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time NextDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  absl::CondVar timer_;
  absl::Time timer_wakes_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  Roster roster_ ABSL_GUARDED_BY(mu_);
  KeyValue store_ ABSL_GUARDED_BY(mu_);
  Barriers barriers_ ABSL_GUARDED_BY(mu_);
  WaitingCalls waiting_ ABSL_GUARDED_BY(mu_);
  std::map<int, std::shared_ptr<HeartbeatStream>> streams_
      ABSL_GUARDED_BY(mu_);                                    // by rank
  std::map<uint64_t, int> stream_ranks_ ABSL_GUARDED_BY(mu_);  // by stream id
};

template <typename Gate, typename Act>
Hub::Reactor* Hub::AnswerNow(Context* context, Gate gate, Act act) {
  Outbox outbox;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = gate();
    if (status.ok()) status = act(&outbox);
    Settle(&outbox);
    outbox.failure = roster_.failure();
  }
  outbox.Deliver();
  Reactor* reactor = context->DefaultReactor();
  AddAnswerMetadata(status, outbox.failure, context);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

template <typename Act>
Hub::Reactor* Hub::AnswerRank(Context* context, const v1::Caller& caller,
                              Act act) {
  return AnswerNow(
      context,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return CheckRank(caller); },
      act);
}

}  // namespace disttrain
