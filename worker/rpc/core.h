// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/call.h"
#include "worker/rpc/call_table.h"
#include "worker/rpc/executor.h"
#include "worker/rpc/future.h"
#include "worker/rpc/peer_table.h"
#include "worker/rpc/reference_table.h"
#include "worker/rpc/wire_message.h"
#include "worker/transport/endpoint.h"

namespace disttrain::rpc::internal {

// What stands behind an Agent: turns messages into calls and back.
//
// Locks: the tables' own, the keeper's, none nested in another, none held while
// sending or calling anything. Lives as long as its Agent, a call, an RRef or
// a Future needs it.
class Core final : public transport::Handler,
                   public std::enable_shared_from_this<Core> {
 public:
  explicit Core(AgentOptions options);
  ~Core() override;

  void Start();
  const Peer& self() const { return options_.self; }
  const PeerTable& peers() const { return peers_; }

  // --- Calls made here (core_calls.cc).

  // Sends the request and resolves call->state when it has ended, whatever
  // happens. `call` has peer, label and state; the rest is filled in.
  // A synchronous call to oneself runs before this returns.
  void StartCall(const std::shared_ptr<WireMessage>& request,
                 const std::shared_ptr<OutgoingCall>& call,
                 std::optional<absl::Duration> timeout, bool synchronous);
  void CancelCall(uint64_t id, const std::string& reason);
  // Its deadline has passed.
  void ExpireCall(uint64_t id);
  // Cancels what was called on behalf of `parent`.
  void CancelCallsOf(const ServedCall& parent, const std::string& reason);

  // --- Calls served here (core_serve.cc).

  void SendReply(ServedCall& call, const std::shared_ptr<WireMessage>& reply,
                 ErrorCode outcome);

  // --- References (core_references.cc).

  // An object that lives here.
  ReferencePtr Own(std::shared_ptr<void> value, const ClassEntry& entry);
  void OnReferenceDropped(const ReferenceState& state);
  // Destroys objects where destructors of users may run.
  static void Discard(std::vector<ReferencePtr> dropped);

  // --- Threads (core.cc).

  // Lends the thread to reading until `done()`, `deadline`, or until it has
  // read something that another thread must run.
  void LendThread(const std::function<bool()>& done, absl::Time deadline);
  void Wake();
  void Post(Task task);

  // --- The agent's business (core_shutdown.cc).

  bool Shutdown(absl::Time deadline);
  void Abort(const std::string& reason);
  void Drop(const Peer& peer, const std::string& reason);
  void Replace(const Peer& peer, const std::string& address);
  // Resolved when a rank comes back; fails when the agent ends.
  std::shared_ptr<State<void>> NextReturn();
  std::string DebugCalls() const;
  AgentStatistics statistics() const;
  // "Observer.RunEpisode to rank 2 for 12.1 s, …": at most eight.
  std::string CallsInFlight() const;

  // --- transport::Handler.
  absl::StatusOr<std::vector<transport::MutableBuffer>> Allocate(
      transport::PeerId from, std::string_view header,
      absl::Span<const uint64_t> sizes) override;
  void OnMessage(transport::PeerId from,
                 transport::ReceivedMessage message) override;
  void OnPeerLost(transport::PeerId peer, const absl::Status& reason) override;
  void OnPeerLeft(transport::PeerId peer) override;

  // Makes this the thread's agent. Scopes nest.
  class Scope {
   public:
    explicit Scope(std::shared_ptr<Core> core);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<Core> previous_;
  };

 private:
  enum class Phase { kRunning, kDraining, kAborted, kClosed };

  // core_calls.cc
  void Complete(const std::shared_ptr<OutgoingCall>& call,
                const absl::Status& claimed,
                const std::shared_ptr<WireMessage>& reply);
  void FailCall(const std::shared_ptr<OutgoingCall>& call, ErrorCode code,
                const std::string& detail,
                ErrorCode cause = ErrorCode::kRemoteException);
  // Why no call may be made any more, if so.
  std::optional<std::pair<ErrorCode, std::string>> Ending() const;
  // Why a call may not be made, if so.
  std::optional<std::pair<ErrorCode, std::string>> Refusal(
      const Peer& peer) const;
  void SendRequest(const std::shared_ptr<WireMessage>& request,
                   const std::shared_ptr<OutgoingCall>& call);
  void CallOneself(const std::shared_ptr<WireMessage>& request,
                   const std::shared_ptr<OutgoingCall>& call, bool synchronous);
  void SendCancel(const OutgoingCall& call);
  void OnReply(const Peer& from, const std::shared_ptr<WireMessage>& reply);
  void Observe(CallRecord::Side side, std::string_view method, const Peer& peer,
               ErrorCode outcome, absl::Time start) const;

  // core_serve.cc
  void Dispatch(const Peer& from, const std::shared_ptr<WireMessage>& message);
  void OnCall(const Peer& from, const std::shared_ptr<WireMessage>& request);
  std::optional<CallRefused> Admit(const std::shared_ptr<ServedCall>& call);
  void Run(const std::shared_ptr<ServedCall>& call);
  void Invoke(ServedCall& call);
  void Create(ServedCall& call);
  void RunDeferred(std::vector<Task> tasks);
  absl::Status SendReplyMessage(const Peer& to, transport::Message message,
                                absl::Time deadline);
  void LosePeer(const Peer& peer, const std::string& why, bool left);

  // core_references.cc
  // Claims the references of `message`; `then` runs when all are confirmed.
  void Claim(const Peer& from, const std::shared_ptr<WireMessage>& message,
             ReferenceTable::Waiting then);
  // Forks asked of an owner that will not answer.
  void SettleIfGone(const Peer& owner);
  void OnFork(const Peer& from, const v1::ForkRequest& request);
  void OnForkReply(const v1::ForkReply& reply);
  void OnRelease(const v1::ReleaseRequest& request);
  void WriteReferences(WireMessage& message, const Peer& to);
  void UnwriteReferences(const WireMessage& message);

  // core_shutdown.cc
  void CancelAll(ErrorCode code, const std::string& reason);
  std::vector<std::shared_ptr<State<void>>> TakeReturns();

  // core.cc
  absl::Status Send(const Peer& to, transport::Message message,
                    absl::Time deadline);
  void SendControl(const Peer& to, const v1::RpcHeader& header);
  void Keep();
  bool KeeperHasWork() const ABSL_SHARED_LOCKS_REQUIRED(keeper_mu_);
  void WakeKeeper();
  void StopKeeper();
  bool EnterEndpoint();
  void LeaveEndpoint();

  const AgentOptions options_;
  transport::Endpoint& endpoint_;
  PeerTable peers_;
  CallTable calls_;
  ReferenceTable references_;
  Executor executor_;
  std::atomic<Phase> phase_ = Phase::kRunning;
  std::atomic<int> inline_calls_ = 0;
  std::atomic<int64_t> malformed_ = 0;
  std::atomic<int> in_endpoint_ = 0;  // threads inside; kClosed lets none in

  mutable absl::Mutex keeper_mu_;
  std::vector<std::pair<Peer, v1::ReleaseRequest>> releases_
      ABSL_GUARDED_BY(keeper_mu_);
  bool keeper_stop_ ABSL_GUARDED_BY(keeper_mu_) = false;
  bool shutdown_ ABSL_GUARDED_BY(keeper_mu_) = false;
  bool keeper_wake_ ABSL_GUARDED_BY(keeper_mu_) = false;
  std::string abort_reason_ ABSL_GUARDED_BY(keeper_mu_);
  // References in replies, until the caller has confirmed them.
  std::map<std::pair<std::pair<int, int>, uint64_t>, std::vector<ReferencePtr>>
      replied_ ABSL_GUARDED_BY(keeper_mu_);
  // Who waits for a rank to come back.
  std::vector<std::shared_ptr<State<void>>> returns_
      ABSL_GUARDED_BY(keeper_mu_);
  std::thread keeper_;
};

}  // namespace disttrain::rpc::internal
