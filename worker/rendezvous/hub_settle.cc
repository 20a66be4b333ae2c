// SPDX-License-Identifier: Apache-2.0
//
// The half of Hub that answers what has waited.
#include <algorithm>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "worker/rendezvous/hub.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

constexpr size_t kShownKeyBytes = 128;

}  // namespace

void Hub::Outbox::Deliver() {
  for (auto& [call, status] : answers) call->Answer(status, failure);
  for (auto& stream : flushes) stream->Flush();
}

WaitingCall* Hub::NewCall(WaitingCall::Kind kind, const v1::Caller& caller,
                          Context* context) {
  return new WaitingCall(kind, caller, context,
                         [hub = shared_from_this()](uint64_t ticket) {
                           hub->CallCancelled(ticket);
                         });
}

void Hub::CallCancelled(uint64_t ticket) {
  Outbox outbox;
  {
    absl::MutexLock lock(&mu_);
    WaitingCall* call = waiting_.Take(ticket);
    if (call == nullptr) return;  // was answered
    barriers_.Abandon(ticket);
    // A retry of the same Join may have overtaken this cancellation.
    if (call->kind == WaitingCall::Kind::kJoin &&
        !waiting_.HasJoin(call->caller.rank())) {
      roster_.AbandonJoin(call->caller, absl::Now());
    }
    outbox.answers.emplace_back(call,
                                absl::CancelledError("the caller gave up"));
    Settle(&outbox);
  }
  outbox.Deliver();
}

absl::Status Hub::CheckServing() const {
  return closing_ ? absl::UnavailableError(
                        "rank 0 leaves: its rendezvous is shutting down")
                  : absl::OkStatus();
}

absl::Status Hub::CheckRank(const v1::Caller& caller) const {
  RETURN_IF_ERROR(CheckServing());
  RETURN_IF_ERROR(roster_.Check(caller));
  if (roster_.failure()) {
    return absl::UnavailableError(Describe(*roster_.failure()));
  }
  return absl::OkStatus();
}

void Hub::Settle(Outbox* outbox) {
  for (const v1::Event& event : roster_.TakeEvents()) {
    if (event.has_joined()) barriers_.RankBack(event.joined().rank());
    // Rank 0, whose process this is, hears it last, for it may leave at once.
    for (auto it = streams_.rbegin(); it != streams_.rend(); ++it) {
      it->second->Enqueue(event);
      outbox->flushes.push_back(it->second);
    }
  }
  for (const int rank : roster_.TakeGone()) {
    AnswerBarriers(barriers_.RankGone(rank, roster_.Replaceable(rank)), outbox);
  }
  outbox->failure = roster_.failure();
  if (roster_.failure() || closing_) {
    EndAll(outbox);
  } else if (roster_.Complete()) {
    for (WaitingCall* call : waiting_.TakeAll(WaitingCall::Kind::kJoin)) {
      FillAnswer(call);
      outbox->answers.emplace_back(call, absl::OkStatus());
    }
  }
  if (!roster_.undecided()) {
    for (WaitingCall* call : waiting_.TakeAll(WaitingCall::Kind::kReport)) {
      outbox->answers.emplace_back(call, absl::OkStatus());
    }
  }
  if (NextDeadline() < timer_wakes_) timer_.Signal();
}

void Hub::EndAll(Outbox* outbox) {
  barriers_.Clear();
  for (WaitingCall* call : waiting_.TakeAll()) {
    absl::Status status;
    if (call->kind == WaitingCall::Kind::kReport) {
      FillAnswer(call);
    } else if (roster_.failure()) {
      status = absl::UnavailableError(Describe(*roster_.failure()));
    } else {
      status = CheckServing();
    }
    outbox->answers.emplace_back(call, status);
  }
}

void Hub::AnswerBarriers(const Barriers::Answers& answers, Outbox* outbox) {
  for (const auto& [ticket, status] : answers) {
    if (WaitingCall* call = waiting_.Take(ticket); call != nullptr) {
      outbox->answers.emplace_back(call, status);
    }
  }
}

void Hub::KeySet(const std::string& key, Outbox* outbox) {
  const auto exists = [&](const std::string& name)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                            return store_.Find(name) != nullptr;
                          };
  for (WaitingCall* call : waiting_.TakeReady(key, exists)) {
    FillAnswer(call);
    outbox->answers.emplace_back(call, absl::OkStatus());
  }
}

void Hub::FillAnswer(WaitingCall* call) const {
  if (call->join != nullptr) {
    for (v1::Member& member : roster_.Members()) {
      *call->join->add_members() = std::move(member);
    }
  }
  if (call->get != nullptr) {
    if (const std::string* value = store_.Find(call->keys.front())) {
      call->get->set_value(*value);
    }
  }
  if (call->report != nullptr && roster_.failure()) {
    *call->report->mutable_first() = *roster_.failure();
  }
}

absl::Status Hub::LateStatus(const WaitingCall& call) const {
  if (call.kind == WaitingCall::Kind::kJoin) {
    return absl::DeadlineExceededError(roster_.MissingText());
  }
  const auto missing = static_cast<size_t>(std::count_if(
      call.keys.begin(), call.keys.end(),
      [&](const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return store_.Find(key) == nullptr;
      }));
  return absl::DeadlineExceededError(fmt::format(
      "key '{}' was not set in time{}",
      OneLine(call.keys[call.next_key], kShownKeyBytes),
      missing > 1 ? fmt::format(", nor were {} others", missing - 1) : ""));
}

void Hub::Expire(absl::Time now, Outbox* outbox) {
  roster_.Advance(now);
  AnswerBarriers(barriers_.Expire(now), outbox);
  std::vector<WaitingCall*> late = waiting_.TakeExpired(now);
  // One rank that gives up ends the meeting: all hear the same names.
  if (std::any_of(late.begin(), late.end(), [](const WaitingCall* call) {
        return call->kind == WaitingCall::Kind::kJoin;
      })) {
    const auto joins = waiting_.TakeAll(WaitingCall::Kind::kJoin);
    late.insert(late.end(), joins.begin(), joins.end());
  }
  for (WaitingCall* call : late) {
    outbox->answers.emplace_back(call, LateStatus(*call));
  }
  for (const WaitingCall* call : late) {
    if (call->kind == WaitingCall::Kind::kJoin) {
      roster_.AbandonJoin(call->caller, now);
    }
  }
}

absl::Time Hub::NextDeadline() const {
  return std::min({roster_.NextDeadline(), barriers_.NextDeadline(),
                   waiting_.NextDeadline()});
}

void Hub::RunTimer() {
  while (true) {
    Outbox outbox;
    {
      absl::MutexLock lock(&mu_);
      if (closing_) return;
      timer_wakes_ = NextDeadline();
      if (absl::Now() < timer_wakes_) {
        timer_.WaitWithDeadline(&mu_, timer_wakes_);
      }
      timer_wakes_ = absl::InfinitePast();
      if (closing_) return;
      Expire(absl::Now(), &outbox);
      Settle(&outbox);
    }
    outbox.Deliver();
  }
}

void Hub::Close(absl::Time deadline) {
  Outbox outbox;
  std::map<int, std::shared_ptr<HeartbeatStream>> streams;
  {
    absl::MutexLock lock(&mu_);
    const auto told = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return closing_ || !roster_.Ended() || roster_.AllHaveStreams();
    };
    mu_.AwaitWithDeadline(absl::Condition(&told), deadline);
    closing_ = true;
    Settle(&outbox);
    streams.swap(streams_);
    stream_ranks_.clear();
    timer_.Signal();
  }
  outbox.Deliver();
  for (auto& [rank, stream] : streams) {
    stream->End(absl::OkStatus(), std::nullopt);
  }
}

}  // namespace disttrain
