// SPDX-License-Identifier: Apache-2.0
//
// The caller's side.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/rpc/core.h"
#include "worker/rpc/error_codes.h"

namespace disttrain::rpc::internal {
namespace {

CallSite SiteOf(const OutgoingCall& call) {
  return {.peer = call.peer,
          .method = std::string(call.label),
          .elapsed = absl::Now() - call.start};
}

}  // namespace

void Core::Observe(CallRecord::Side side, std::string_view method,
                   const Peer& peer, ErrorCode outcome,
                   absl::Time start) const {
  if (options_.observer == nullptr) return;
  options_.observer->OnCallDone({.side = side,
                                 .method = method,
                                 .peer_role = peer.role,
                                 .outcome = outcome,
                                 .duration = absl::Now() - start});
}

void Core::FailCall(const std::shared_ptr<OutgoingCall>& call, ErrorCode code,
                    const std::string& detail, ErrorCode cause) {
  Observe(CallRecord::Side::kCaller, call->label, call->peer, code,
          call->start);
  if (call->record != nullptr) call->record->OnError();
  call->state->Fail(MakeError(code, SiteOf(*call), detail, cause));
}

std::optional<std::pair<ErrorCode, std::string>> Core::Ending() const {
  switch (phase_.load()) {
    case Phase::kRunning:
      return std::nullopt;
    case Phase::kDraining:
      // What runs here may finish, and may need calls for that.
      if (ServedCall::Current() != nullptr) return std::nullopt;
      [[fallthrough]];
    case Phase::kClosed:
      return {{ErrorCode::kShuttingDown, "this process is shutting down"}};
    case Phase::kAborted:
      break;
  }
  absl::MutexLock lock(&keeper_mu_);
  return {{ErrorCode::kCancelled, abort_reason_}};
}

std::optional<std::pair<ErrorCode, std::string>> Core::Refusal(
    const Peer& peer) const {
  if (auto ending = Ending()) return ending;
  const ServedCall* parent = ServedCall::Current();
  if (parent != nullptr && parent->cancelled()) {
    return {{ErrorCode::kCancelled, "the call that makes it was cancelled"}};
  }
  const auto status = peers_.Get(peer.rank);
  if (status == nullptr) {
    return {{ErrorCode::kInvalidArgument, "there is no such rank"}};
  }
  if (status->peer.incarnation != peer.incarnation) {
    return {{ErrorCode::kPeerLost,
             fmt::format("its process (incarnation {}) was lost; the rank is "
                         "now in incarnation {}",
                         peer.incarnation, status->peer.incarnation)}};
  }
  if (status->lost) return {{ErrorCode::kPeerLost, status->lost_reason}};
  if (status->left) {
    return {{ErrorCode::kShuttingDown, "the peer has shut down"}};
  }
  return std::nullopt;
}

void Core::StartCall(const std::shared_ptr<WireMessage>& request,
                     const std::shared_ptr<OutgoingCall>& call,
                     std::optional<absl::Duration> timeout, bool synchronous) {
  const ServedCall* parent = ServedCall::Current();
  const absl::Duration limit = timeout.value_or(options_.default_timeout);
  call->id = calls_.NextId();
  call->start = absl::Now();
  call->deadline = limit == absl::ZeroDuration() ? absl::InfiniteFuture()
                                                 : call->start + limit;
  if (parent != nullptr) {
    call->parent = parent->serial();
    call->deadline = std::min(call->deadline, parent->deadline());
  }
  call->state->BindCall(shared_from_this(), call->id, call->deadline);
  if (const auto refusal = Refusal(call->peer)) {
    FailCall(call, refusal->first, refusal->second);
    return;
  }
  if (call->deadline <= call->start) {
    FailCall(call, ErrorCode::kDeadlineExceeded,
             "no time is left of the call that makes it");
    return;
  }
  v1::CallRequest& header = *request->header->mutable_call();
  header.set_call_id(call->id);
  if (call->deadline != absl::InfiniteFuture()) {
    header.set_deadline_us(std::max<int64_t>(
        1, absl::ToInt64Microseconds(call->deadline - call->start)));
  }
  if (CallRecorder* recorder = CallRecorder::Current()) {
    call->record =
        recorder->OnRequest(call->peer, call->label, request->tensors,
                            *header.mutable_recorder_note());
  }
  if (call->peer == options_.self) {
    CallOneself(request, call, synchronous);
  } else {
    SendRequest(request, call);
  }
}

void Core::SendRequest(const std::shared_ptr<WireMessage>& request,
                       const std::shared_ptr<OutgoingCall>& call) {
  const uint64_t id = call->id;
  const absl::Time deadline = call->deadline;
  WriteReferences(*request, call->peer);
  transport::Message message = Serialize(*request);
  // Known before it is sent: the reply may come at once.
  if (calls_.AddOutgoing(call)) WakeKeeper();
  const absl::Status sent = Send(call->peer, std::move(message), deadline);
  if (sent.ok()) return;
  UnwriteReferences(*request);
  // Somebody else may have failed it meanwhile: the peer was lost.
  const auto taken = calls_.TakeOutgoing(id, /*detach=*/false);
  if (taken == nullptr) return;
  ErrorCode code = ErrorCode::kPeerLost;
  if (absl::IsInvalidArgument(sent)) code = ErrorCode::kInvalidArgument;
  if (absl::IsDeadlineExceeded(sent)) code = ErrorCode::kDeadlineExceeded;
  if (absl::IsCancelled(sent)) code = ErrorCode::kShuttingDown;
  // What is known of the peer by now says more than the transport.
  const auto refusal = Refusal(call->peer);
  FailCall(taken, refusal.has_value() ? refusal->first : code,
           refusal.has_value() ? refusal->second : Message(sent));
}

void Core::CallOneself(const std::shared_ptr<WireMessage>& request,
                       const std::shared_ptr<OutgoingCall>& call,
                       bool synchronous) {
  if (calls_.AddOutgoing(call)) WakeKeeper();
  const auto served = std::make_shared<ServedCall>(
      shared_from_this(), options_.self, request, /*local=*/true);
  if (const auto refused = Admit(served)) {
    served->Fail(refused->code(), refused->what());
    return;
  }
  if (synchronous) {
    const Scope scope(shared_from_this());
    Run(served);
  } else {
    Post([this, served] { Run(served); });
  }
}

void Core::SendCancel(const OutgoingCall& call) {
  if (call.peer == options_.self) {
    if (const auto served = calls_.FindIncoming(call.peer, call.id)) {
      served->Cancel("the caller cancelled the call");
    }
    return;
  }
  v1::RpcHeader header;
  header.mutable_cancel()->set_call_id(call.id);
  SendControl(call.peer, header);
}

void Core::CancelCall(uint64_t id, const std::string& reason) {
  const auto call = calls_.TakeOutgoing(id, /*detach=*/true);
  if (call == nullptr) return;
  SendCancel(*call);
  FailCall(call, ErrorCode::kCancelled, reason);
}

void Core::CancelCallsOf(const ServedCall& parent, const std::string& reason) {
  const auto calls = calls_.TakeOutgoingIf(
      [&](const OutgoingCall& call) { return call.parent == parent.serial(); });
  for (const auto& call : calls) {
    SendCancel(*call);
    FailCall(call, ErrorCode::kCancelled, reason);
  }
}

void Core::ExpireCall(uint64_t id) {
  // Listed before it is taken: it is one of them.
  const std::string in_flight = CallsInFlight();
  const auto call = calls_.TakeOutgoing(id, /*detach=*/true);
  if (call == nullptr) return;
  SendCancel(*call);
  FailCall(call, ErrorCode::kDeadlineExceeded,
           fmt::format("no reply within {:.2f} s; calls in flight: {}",
                       absl::ToDoubleSeconds(call->deadline - call->start),
                       in_flight));
}

void Core::OnReply(const Peer& from,
                   const std::shared_ptr<WireMessage>& reply) {
  const auto complete = [this, from, reply](const absl::Status& claimed) {
    const uint64_t id = reply->header->reply().call_id();
    if (!reply->references.empty()) {
      v1::RpcHeader header;
      header.mutable_received()->set_call_id(id);
      SendControl(from, header);
    }
    std::shared_ptr<OutgoingCall> call;
    if (calls_.IsOutgoingTo(id, from.rank, from.incarnation)) {
      call = calls_.TakeOutgoing(id, /*detach=*/false);
    }
    if (call != nullptr) {
      Complete(call, claimed, reply);
    } else {
      // Late: the call was cancelled or has expired.
      Discard(calls_.DropDetached(id));
    }
    Discard(std::move(reply->references));
    if (call != nullptr) Discard(std::move(call->kept));
  };
  if (reply->header->references().empty()) {
    complete(absl::OkStatus());
  } else {
    Claim(from, reply, complete);
  }
}

void Core::Complete(const std::shared_ptr<OutgoingCall>& call,
                    const absl::Status& claimed,
                    const std::shared_ptr<WireMessage>& reply) {
  const v1::CallReply& header = reply->header->reply();
  if (header.has_error()) {
    FailCall(call, CodeOf(header.error().kind()), header.error().message(),
             CodeOf(header.error().cause()));
    return;
  }
  if (!claimed.ok()) {
    FailCall(call, ErrorCode::kReferenceLost, Message(claimed));
    return;
  }
  try {
    if (call->record != nullptr) {
      call->record->OnReply(header.recorder_note(), reply->tensors);
    }
    call->state->DecodeResult(Reader(&header.result(), reply.get()));
  } catch (const ValueError& error) {
    FailCall(call, ErrorCode::kInvalidArgument,
             fmt::format("result: {}", error.what()));
    return;
  } catch (...) {  // of the recorder
    call->state->Fail(std::current_exception());
  }
  Observe(CallRecord::Side::kCaller, call->label, call->peer, ErrorCode::kOk,
          call->start);
}

}  // namespace disttrain::rpc::internal
