// SPDX-License-Identifier: Apache-2.0
//
// The callee's side, and what arrives.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/rpc/arguments.h"
#include "worker/rpc/core.h"
#include "worker/rpc/error_codes.h"

namespace disttrain::rpc::internal {

size_t Arguments::size() const {
  return static_cast<size_t>(request_->header->call().arguments_size());
}

Reader Arguments::at(size_t index) const {
  return Reader(&request_->header->call().arguments(static_cast<int>(index)),
                request_);
}

absl::StatusOr<std::vector<transport::MutableBuffer>> Core::Allocate(
    transport::PeerId from, std::string_view header,
    absl::Span<const uint64_t> sizes) {
  absl::StatusOr<std::shared_ptr<WireMessage>> message = ParseHeader(header);
  absl::Status status = message.status();
  if (status.ok()) status = AllocateTensors(sizes, **message);
  if (status.ok()) return BuffersOf(*message);
  malformed_.fetch_add(1);
  return absl::InvalidArgumentError(
      fmt::format("malformed message of rank {}: {}", from.rank,
                  disttrain::Message(status)));
}

void Core::OnMessage(transport::PeerId from,
                     transport::ReceivedMessage received) {
  Deferral deferral;
  const auto peer = peers_.Get(from);
  if (peer == nullptr || peer->lost) return;  // a former life
  std::shared_ptr<WireMessage> message;
  if (!received.buffers.empty()) {
    // What Allocate made: each buffer owns it.
    message = std::static_pointer_cast<WireMessage>(received.buffers[0].owner);
    received.buffers.clear();
    NormaliseTensors(*message);
  } else {
    auto parsed = ParseHeader(received.header);
    absl::Status status = parsed.status();
    if (status.ok()) status = AllocateTensors({}, **parsed);
    if (!status.ok()) {
      malformed_.fetch_add(1);
      Drop(peer->peer,
           fmt::format("malformed message: {}", disttrain::Message(status)));
      for (Task& task : deferral.Take()) Post(std::move(task));
      return;
    }
    message = *std::move(parsed);
  }
  Dispatch(peer->peer, message);
  message.reset();
  RunDeferred(deferral.Take());
}

void Core::Dispatch(const Peer& from,
                    const std::shared_ptr<WireMessage>& message) {
  const v1::RpcHeader& header = *message->header;
  switch (header.kind_case()) {
    case v1::RpcHeader::kCall:
      return OnCall(from, message);
    case v1::RpcHeader::kReply:
      return OnReply(from, message);
    case v1::RpcHeader::kCancel:
      if (auto call = calls_.FindCancelled(from, header.cancel().call_id())) {
        call->Cancel("the caller cancelled the call or gave it up");
      }
      return;
    case v1::RpcHeader::kFork:
      return OnFork(from, header.fork());
    case v1::RpcHeader::kForkReply:
      return OnForkReply(header.fork_reply());
    case v1::RpcHeader::kRelease:
      return OnRelease(header.release());
    case v1::RpcHeader::kReceived: {
      std::vector<ReferencePtr> kept;
      {
        absl::MutexLock lock(&keeper_mu_);
        auto node = replied_.extract(
            {{from.rank, from.incarnation}, header.received().call_id()});
        if (!node.empty()) kept = std::move(node.mapped());
      }
      return Discard(std::move(kept));
    }
    case v1::RpcHeader::KIND_NOT_SET:
      return;  // refused by ParseHeader
  }
}

std::optional<CallRefused> Core::Admit(
    const std::shared_ptr<ServedCall>& call) {
  switch (calls_.AddIncoming(call, options_.max_running_calls)) {
    case CallTable::Admission::kAdmitted:
      break;
    case CallTable::Admission::kFull:
      return CallRefused(
          ErrorCode::kOverloaded,
          fmt::format("{} calls are running here already, at most {} may",
                      calls_.incoming_count(), options_.max_running_calls));
    case CallTable::Admission::kCancelled:
      return CallRefused(ErrorCode::kCancelled, "cancelled before it began");
    case CallTable::Admission::kDuplicate:
      return CallRefused(
          ErrorCode::kInvalidArgument,
          fmt::format("call {} is running already", call->call_id()));
  }
  const Phase phase = phase_.load();
  // Calls to oneself were let through by Refusal.
  if (phase == Phase::kRunning ||
      (phase == Phase::kDraining && call->local())) {
    return std::nullopt;
  }
  return CallRefused(ErrorCode::kShuttingDown,
                     "the process is shutting down and takes no more calls");
}

void Core::OnCall(const Peer& from,
                  const std::shared_ptr<WireMessage>& request) {
  const auto call = std::make_shared<ServedCall>(shared_from_this(), from,
                                                 request, /*local=*/false);
  // References are claimed even if the call is refused: the owner counts them.
  const std::optional<CallRefused> refused = Admit(call);
  const auto go = [this, call, refused](const absl::Status& claimed) {
    if (refused.has_value()) {
      call->Fail(refused->code(), refused->what());
    } else if (!claimed.ok()) {
      call->Fail(ErrorCode::kReferenceLost, disttrain::Message(claimed));
    } else {
      Deferral::Run([this, call] { Run(call); });
    }
  };
  if (request->header->references().empty()) {
    go(absl::OkStatus());
  } else {
    Claim(from, request, go);
  }
}

void Core::Run(const std::shared_ptr<ServedCall>& call) {
  const ServedCall::Scope scope(call.get());
  const CallRecorder::Scope unrecorded(nullptr);
  if (call->cancelled()) {
    call->Fail(ErrorCode::kCancelled, "cancelled before it began");
    return;
  }
  try {
    if (call->request()->header->call().has_target()) {
      Invoke(*call);
    } else {
      Create(*call);
    }
  } catch (...) {
    call->Fail(std::current_exception());
  }
}

void Core::Invoke(ServedCall& call) {
  WireMessage& request = *call.request();
  const v1::CallRequest& header = request.header->call();
  const ReferencePtr target = references_.Find(header.target());
  if (target == nullptr) {
    throw CallRefused(
        ErrorCode::kReferenceLost,
        fmt::format("object {} of class {} is gone here (incarnation {}) or "
                    "never was",
                    header.target().object(), header.class_name(),
                    options_.self.incarnation));
  }
  const MethodEntry* method = target->entry->Find(header.method());
  if (method == nullptr) {
    throw CallRefused(
        ErrorCode::kUnknownMethod,
        fmt::format("no method {} is registered; {}", header.method(),
                    target->entry->ListMethods()));
  }
  call.set_metric_label(method->label);
  if (!header.recorder_note().empty() && options_.call_receiver != nullptr) {
    call.record = options_.call_receiver->OnRequest(
        call.caller(), method->label, header.recorder_note(), request.tensors);
  }
  struct AroundMethod {
    explicit AroundMethod(ServedCall& c) : call(c) { call.BeforeMethod(); }
    ~AroundMethod() { call.AfterMethod(); }
    ServedCall& call;
  };
  const AroundMethod around(call);
  try {
    method->run(target->value.get(), Arguments(request), call);
  } catch (const ValueError& error) {
    throw ValueError(
        fmt::format("{}; the method is {}", error.what(), method->signature));
  }
}

void Core::Create(ServedCall& call) {
  const v1::CallRequest& header = call.request()->header->call();
  const ClassEntry* entry = options_.registry.Find(header.class_name());
  if (entry == nullptr) {
    throw CallRefused(
        ErrorCode::kUnknownMethod,
        fmt::format("no class {} is registered; registered are: {}",
                    header.class_name(), options_.registry.ListClasses()));
  }
  call.set_metric_label(entry->name);
  const ReferencePtr created =
      Own(entry->create(Arguments(*call.request())), *entry);
  call.ReturnReference(created);
}

ReferencePtr Core::Own(std::shared_ptr<void> value, const ClassEntry& entry) {
  return references_.Own(std::move(value), entry, weak_from_this());
}

void Core::SendReply(ServedCall& call,
                     const std::shared_ptr<WireMessage>& reply,
                     ErrorCode outcome) {
  calls_.RemoveIncoming(call);
  Observe(CallRecord::Side::kCallee, call.metric_label(), call.caller(),
          outcome, call.start());
  if (call.local()) {
    if (auto outgoing = calls_.TakeOutgoing(call.call_id(), false)) {
      Complete(outgoing, absl::OkStatus(), reply);
    } else {
      Discard(calls_.DropDetached(call.call_id()));
    }
    return;
  }
  std::vector<ReferencePtr> kept;
  for (const ReferencePtr& state : reply->references) {
    if (!state->local()) kept.push_back(state);
  }
  if (!kept.empty()) {
    absl::MutexLock lock(&keeper_mu_);
    replied_[{{call.caller().rank, call.caller().incarnation},
              call.call_id()}] = std::move(kept);
  }
  WriteReferences(*reply, call.caller());
  if (reply->header->reply().has_error()) {
    SendControl(call.caller(), *reply->header);
    return;
  }
  const absl::Status sent =
      SendReplyMessage(call.caller(), Serialize(*reply), call.deadline());
  if (sent.ok()) return;
  UnwriteReferences(*reply);
  if (!absl::IsInvalidArgument(sent)) return;  // nobody waits any longer
  v1::RpcHeader error;
  error.mutable_reply()->set_call_id(call.call_id());
  error.mutable_reply()->mutable_error()->set_kind(
      KindOf(ErrorCode::kInvalidArgument));
  error.mutable_reply()->mutable_error()->set_message(
      fmt::format("the result cannot be sent: {}", disttrain::Message(sent)));
  SendControl(call.caller(), error);
}

absl::Status Core::SendReplyMessage(const Peer& to, transport::Message message,
                                    absl::Time deadline) {
  if (!Deferral::Active()) return Send(to, std::move(message), deadline);
  // A thread that reads may not wait for room in the queue.
  transport::Message again = message;
  absl::Status sent = Send(to, std::move(message), absl::InfinitePast());
  if (!absl::IsDeadlineExceeded(sent)) return sent;
  Post([this, to, again = std::move(again), deadline]() mutable {
    // If there is no room until the deadline, the caller has given up.
    Send(to, std::move(again), deadline).IgnoreError();
  });
  return absl::OkStatus();
}

void Core::Drop(const Peer& peer, const std::string& reason) {
  OnPeerLost({peer.rank, peer.incarnation}, absl::UnavailableError(reason));
}

void Core::OnPeerLost(transport::PeerId id, const absl::Status& reason) {
  Deferral deferral;
  const auto status = peers_.Get(id);
  const std::string why = disttrain::Message(reason);
  if (status == nullptr || !peers_.MarkLost(id, why)) return;
  LosePeer(status->peer, why, /*left=*/false);
  for (Task& task : deferral.Take()) Post(std::move(task));
}

void Core::OnPeerLeft(transport::PeerId id) {
  Deferral deferral;
  const auto status = peers_.Get(id);
  if (status == nullptr || !peers_.MarkLeft(id)) return;
  LosePeer(status->peer, "the peer has shut down", /*left=*/true);
  for (Task& task : deferral.Take()) Post(std::move(task));
}

void Core::LosePeer(const Peer& peer, const std::string& why, bool left) {
  const ErrorCode code = left ? ErrorCode::kShuttingDown : ErrorCode::kPeerLost;
  const auto calls = calls_.TakeOutgoingIf(
      [&](const OutgoingCall& call) { return call.peer == peer; });
  for (const auto& call : calls) FailCall(call, code, why);
  for (const auto& call : calls_.IncomingOf(&peer)) {
    call->Cancel(fmt::format("its caller, {}, was lost", Describe(peer)));
  }
  Discard(references_.DropHolder(peer));
  Discard(calls_.DropDetachedOf(peer.rank, peer.incarnation));
  SettleIfGone(peer);
  std::vector<ReferencePtr> kept;
  {
    absl::MutexLock lock(&keeper_mu_);
    for (auto it = replied_.begin(); it != replied_.end();) {
      if (it->first.first == std::pair(peer.rank, peer.incarnation)) {
        for (auto& state : it->second) kept.push_back(std::move(state));
        it = replied_.erase(it);
      } else {
        ++it;
      }
    }
  }
  Discard(std::move(kept));
  if (options_.on_peer_lost && !left) {
    Post([this, peer, why] { options_.on_peer_lost(peer, why); });
  }
}

}  // namespace disttrain::rpc::internal
