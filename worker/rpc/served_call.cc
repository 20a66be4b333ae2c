// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/served_call.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "worker/rpc/core.h"
#include "worker/rpc/error_codes.h"
#include "worker/rpc/wire_message.h"

namespace disttrain::rpc::internal {
namespace {

thread_local ServedCall* current_call = nullptr;

std::atomic<uint64_t> next_serial = 1;

absl::Time DeadlineOf(const v1::CallRequest& call, absl::Time start) {
  return call.deadline_us() <= 0
             ? absl::InfiniteFuture()
             : start + absl::Microseconds(call.deadline_us());
}

}  // namespace

ServedCall::ServedCall(std::shared_ptr<Core> core, Peer caller,
                       std::shared_ptr<WireMessage> request, bool local)
    : core_(std::move(core)),
      caller_(std::move(caller)),
      request_(std::move(request)),
      local_(local),
      call_id_(request_->header->call().call_id()),
      serial_(next_serial.fetch_add(1, std::memory_order_relaxed)),
      start_(absl::Now()),
      deadline_(DeadlineOf(request_->header->call(), start_)) {}

ServedCall* ServedCall::Current() { return current_call; }

ServedCall::Scope::Scope(ServedCall* call)
    : previous_(std::exchange(current_call, call)) {}

ServedCall::Scope::~Scope() { current_call = previous_; }

std::string ServedCall::Label() const {
  const v1::CallRequest& call = request_->header->call();
  return call.has_target()
             ? fmt::format("{}.{}", call.class_name(), call.method())
             : call.class_name();
}

void ServedCall::BeforeMethod() {
  if (record == nullptr) return;
  record->BeforeMethod();
  in_method_ = true;
}

void ServedCall::AfterMethod() {
  if (std::exchange(in_method_, false)) record->AfterMethod();
}

void ServedCall::Cancel(const std::string& reason) {
  if (cancelled_.exchange(true)) return;
  std::shared_ptr<FutureState> result;
  {
    absl::MutexLock lock(&mu_);
    for (FutureState* state : waits_) state->Poke();
    result = result_;
  }
  core_->CancelCallsOf(*this, reason);
  core_->Wake();
  if (result != nullptr) result->Cancel(reason);
}

void ServedCall::AddWait(FutureState* state) {
  absl::MutexLock lock(&mu_);
  waits_.push_back(state);
}

void ServedCall::RemoveWait(FutureState* state) {
  absl::MutexLock lock(&mu_);
  waits_.erase(std::find(waits_.begin(), waits_.end(), state));
}

void ServedCall::ReturnLater(const std::shared_ptr<FutureState>& future,
                             Task send) {
  {
    absl::MutexLock lock(&mu_);
    result_ = future;
  }
  if (cancelled()) future->Cancel("the caller cancelled the call");
  future->OnReadyUserCode(std::move(send));
}

std::shared_ptr<WireMessage> ServedCall::NewReply() const {
  auto reply = std::make_shared<WireMessage>();
  reply->header->mutable_reply()->set_call_id(call_id_);
  return reply;
}

Writer ServedCall::ResultOf(WireMessage& reply) {
  return Writer(reply.header->mutable_reply()->mutable_result(), &reply);
}

void ServedCall::ReturnReference(
    const std::shared_ptr<ReferenceState>& reference) {
  const std::shared_ptr<WireMessage> reply = NewReply();
  ResultOf(*reply).Reference(reference);
  Reply(reply, ErrorCode::kOk);
}

void ServedCall::Fail(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CallRefused& e) {
    Fail(e.code(), e.what());
  } catch (const ValueError& e) {
    Fail(ErrorCode::kInvalidArgument, e.what());
  } catch (const Error& e) {
    // The caller has been told of the end of its own call by its own clock;
    // anything else that a nested call met is this method's exception.
    const bool ended =
        (cancelled() && e.code() == ErrorCode::kCancelled) ||
        (absl::Now() >= deadline_ && e.code() == ErrorCode::kDeadlineExceeded);
    const auto* remote = dynamic_cast<const RemoteException*>(&e);
    Fail(ended ? e.code() : ErrorCode::kRemoteException, e.what(),
         remote != nullptr ? remote->cause() : e.code());
  } catch (...) {
    Fail(ErrorCode::kRemoteException, MessageOf(error));
  }
}

void ServedCall::Fail(ErrorCode code, const std::string& message,
                      ErrorCode cause) {
  const std::shared_ptr<WireMessage> reply = NewReply();
  v1::Error* error = reply->header->mutable_reply()->mutable_error();
  error->set_kind(KindOf(code));
  error->set_cause(KindOf(cause));
  // A message has room in a header and in a log line.
  constexpr size_t kMaxMessage = 64 << 10;
  error->set_message(message.substr(0, kMaxMessage));
  Reply(reply, code);
}

void ServedCall::Reply(const std::shared_ptr<WireMessage>& reply,
                       ErrorCode outcome) {
  if (replied_.exchange(true)) return;
  if (outcome == ErrorCode::kOk && record != nullptr) {
    try {
      reply->header->mutable_reply()->set_recorder_note(
          record->OnReply(reply->tensors));
    } catch (...) {
      replied_ = false;
      Fail(ErrorCode::kRemoteException, MessageOf(std::current_exception()));
      return;
    }
  }
  core_->SendReply(*this, reply, outcome);
}

}  // namespace disttrain::rpc::internal
