// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/waiting_calls.h"

#include <algorithm>

#include "proto/runtime/status.h"
#include "worker/rendezvous/text.h"

namespace disttrain {

void AddAnswerMetadata(const absl::Status& status,
                       const std::optional<v1::Failure>& failure,
                       grpc::ServerContextBase* context) {
  if (status.ok()) return;
  context->AddTrailingMetadata(kAnswerMetadata, "1");
  if (failure && absl::IsUnavailable(status)) {
    context->AddTrailingMetadata(kFailureMetadata,
                                 failure->SerializeAsString());
  }
}

void WaitingCall::Answer(const absl::Status& status,
                         const std::optional<v1::Failure>& failure) {
  AddAnswerMetadata(status, failure, context_);
  Finish(ToGrpc(status));
}

void WaitingCalls::Add(WaitingCall* call) {
  call->ticket = ++last_ticket_;
  calls_[call->ticket] = call;
  deadlines_.emplace(call->deadline, call->ticket);
  if (call->kind == WaitingCall::Kind::kKeys) {
    by_key_[call->keys[call->next_key]].push_back(call->ticket);
  }
}

void WaitingCalls::Forget(const WaitingCall& call) {
  deadlines_.erase({call.deadline, call.ticket});
  if (call.kind == WaitingCall::Kind::kKeys &&
      call.next_key < call.keys.size()) {
    const auto it = by_key_.find(call.keys[call.next_key]);
    if (it != by_key_.end()) {
      std::erase(it->second, call.ticket);
      if (it->second.empty()) by_key_.erase(it);
    }
  }
  calls_.erase(call.ticket);
}

WaitingCall* WaitingCalls::Take(uint64_t ticket) {
  const auto it = calls_.find(ticket);
  if (it == calls_.end()) return nullptr;
  WaitingCall* call = it->second;
  Forget(*call);
  return call;
}

std::vector<WaitingCall*> WaitingCalls::TakeAll() {
  std::vector<WaitingCall*> taken;
  for (const auto& [ticket, call] : calls_) taken.push_back(call);
  calls_.clear();
  deadlines_.clear();
  by_key_.clear();
  return taken;
}

std::vector<WaitingCall*> WaitingCalls::TakeAll(WaitingCall::Kind kind) {
  std::vector<WaitingCall*> taken;
  for (const auto& [ticket, call] : calls_) {
    if (call->kind == kind) taken.push_back(call);
  }
  for (const WaitingCall* call : taken) Forget(*call);
  return taken;
}

std::vector<WaitingCall*> WaitingCalls::TakeExpired(absl::Time now) {
  std::vector<WaitingCall*> taken;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    taken.push_back(Take(deadlines_.begin()->second));
  }
  return taken;
}

std::vector<WaitingCall*> WaitingCalls::TakeReady(const std::string& key,
                                                  const KeyExists& exists) {
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return {};
  const std::vector<uint64_t> tickets = std::move(it->second);
  by_key_.erase(it);
  std::vector<WaitingCall*> ready;
  for (const uint64_t ticket : tickets) {
    WaitingCall* call = calls_.at(ticket);
    while (call->next_key < call->keys.size() &&
           exists(call->keys[call->next_key])) {
      ++call->next_key;
    }
    if (call->next_key == call->keys.size()) {
      Forget(*call);
      ready.push_back(call);
    } else {
      by_key_[call->keys[call->next_key]].push_back(ticket);
    }
  }
  return ready;
}

bool WaitingCalls::HasJoin(int rank) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const auto& entry) {
    return entry.second->kind == WaitingCall::Kind::kJoin &&
           entry.second->caller.rank() == rank;
  });
}

absl::Time WaitingCalls::NextDeadline() const {
  return deadlines_.empty() ? absl::InfiniteFuture()
                            : deadlines_.begin()->first;
}

}  // namespace disttrain
