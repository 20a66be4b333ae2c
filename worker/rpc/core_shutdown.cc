// SPDX-License-Identifier: Apache-2.0
//
// The agent's own business: its end, and what can be seen of it.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "worker/rpc/core.h"

namespace disttrain::rpc::internal {
namespace {

// What stuck methods get after everything was cancelled.
constexpr absl::Duration kStuckGrace = absl::Seconds(1);

nlohmann::json ToJson(const Peer& peer) {
  return {{"rank", peer.rank},
          {"incarnation", peer.incarnation},
          {"role", peer.role},
          {"role_index", peer.role_index},
          {"pod", peer.pod}};
}

nlohmann::json CallJson(const std::string& method, const Peer& peer,
                        absl::Time start, absl::Time deadline) {
  const absl::Time now = absl::Now();
  nlohmann::json call = {{"method", method},
                         {"peer", ToJson(peer)},
                         {"seconds", absl::ToDoubleSeconds(now - start)}};
  if (deadline != absl::InfiniteFuture()) {
    call["seconds_left"] = absl::ToDoubleSeconds(deadline - now);
  }
  return call;
}

}  // namespace

std::string Core::CallsInFlight() const {
  constexpr size_t kShown = 8;
  const auto calls = calls_.AllOutgoing();
  std::string text;
  for (size_t i = 0; i < std::min(kShown, calls.size()); ++i) {
    text += fmt::format("{}{} to rank {} for {:.2f} s", i == 0 ? "" : ", ",
                        calls[i].label, calls[i].peer.rank,
                        absl::ToDoubleSeconds(absl::Now() - calls[i].start));
  }
  if (calls.size() > kShown) {
    text += fmt::format(" and {} more", calls.size() - kShown);
  }
  return text.empty() ? "none" : text;
}

std::string Core::DebugCalls() const {
  nlohmann::json out;
  out["self"] = ToJson(options_.self);
  out["outgoing"] = nlohmann::json::array();
  for (const auto& call : calls_.AllOutgoing()) {
    out["outgoing"].push_back(
        CallJson(call.label, call.peer, call.start, call.deadline));
  }
  out["incoming"] = nlohmann::json::array();
  for (const auto& call : calls_.IncomingOf(nullptr)) {
    nlohmann::json one = CallJson(call->Label(), call->caller(), call->start(),
                                  call->deadline());
    one["cancelled"] = call->cancelled();
    out["incoming"].push_back(std::move(one));
  }
  const AgentStatistics now = statistics();
  out["references"] = {{"owned_objects", now.owned_objects},
                       {"owned_forks", now.owned_forks},
                       {"remote_references", now.remote_references},
                       {"pending_forks", now.pending_forks}};
  out["call_threads"] = now.call_threads;
  out["malformed_messages"] = now.malformed_messages;
  // Names come from peers: not necessarily UTF-8.
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

AgentStatistics Core::statistics() const {
  const ReferenceTable::Counts counts = references_.counts();
  return {.outgoing_calls = static_cast<int64_t>(calls_.outgoing_count()),
          .incoming_calls = static_cast<int64_t>(calls_.incoming_count()),
          .owned_objects = counts.owned,
          .owned_forks = counts.forks,
          .remote_references = counts.held,
          .pending_forks = counts.pending,
          .call_threads = executor_.threads(),
          .malformed_messages = malformed_.load()};
}

void Core::Replace(const Peer& peer, const std::string& address) {
  const PeerTable::StatusPtr before = peers_.Get(peer.rank);
  if (!peers_.Replace(peer)) return;  // told again
  if (before != nullptr && !before->lost && !before->left) {
    Deferral deferral;
    LosePeer(before->peer,
             fmt::format("it came back as incarnation {}", peer.incarnation),
             /*left=*/false);
    for (Task& task : deferral.Take()) Post(std::move(task));
  }
  if (EnterEndpoint()) {
    endpoint_.Replace({{peer.rank, peer.incarnation}, address});
    LeaveEndpoint();
  }
  for (const auto& waiting : TakeReturns()) waiting->Set({});
}

std::shared_ptr<State<void>> Core::NextReturn() {
  auto state = std::make_shared<State<void>>();
  {
    absl::MutexLock lock(&keeper_mu_);
    returns_.push_back(state);
  }
  // CancelAll may have looked before.
  if (const auto ending = Ending()) {
    for (const auto& waiting : TakeReturns()) waiting->Cancel(ending->second);
  }
  return state;
}

std::vector<std::shared_ptr<State<void>>> Core::TakeReturns() {
  absl::MutexLock lock(&keeper_mu_);
  return std::exchange(returns_, {});
}

void Core::Abort(const std::string& reason) {
  {
    absl::MutexLock lock(&keeper_mu_);
    abort_reason_ = reason;
  }
  Phase running = Phase::kRunning;
  if (!phase_.compare_exchange_strong(running, Phase::kAborted)) {
    Phase draining = Phase::kDraining;
    phase_.compare_exchange_strong(draining, Phase::kAborted);
  }
  CancelAll(ErrorCode::kCancelled, reason);
}

void Core::CancelAll(ErrorCode code, const std::string& reason) {
  Deferral deferral;
  for (const auto& call : calls_.IncomingOf(nullptr)) {
    call->Cancel(reason);
    // The caller is told now; whatever the method still returns is dropped.
    call->Fail(code, reason);
  }
  const auto calls =
      calls_.TakeOutgoingIf([](const OutgoingCall&) { return true; });
  for (const auto& call : calls) {
    SendCancel(*call);
    FailCall(call, code, reason);
  }
  for (const auto& waiting : TakeReturns()) waiting->Cancel(reason);
  for (Task& task : deferral.Take()) Post(std::move(task));
}

bool Core::Shutdown(absl::Time deadline) {
  {
    absl::MutexLock lock(&keeper_mu_);
    if (std::exchange(shutdown_, true)) return true;
  }
  Phase running = Phase::kRunning;
  phase_.compare_exchange_strong(running, Phase::kDraining);
  calls_.WaitIdle(deadline);
  CancelAll(ErrorCode::kShuttingDown, "the process is shutting down");
  StopKeeper();  // what it still has to release, it sends
  const absl::Time end = std::max(deadline, absl::Now() + kStuckGrace);
  const bool all_ended = executor_.Stop(end);
  phase_.store(Phase::kClosed);
  endpoint_.Wake();
  endpoint_.Close(end);
  return all_ended;
}

}  // namespace disttrain::rpc::internal
