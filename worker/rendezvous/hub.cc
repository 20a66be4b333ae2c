// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/hub.h"

#include <algorithm>
#include <set>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

absl::Time DeadlineIn(int64_t timeout_ms) {
  return timeout_ms > 0 ? absl::Now() + absl::Milliseconds(timeout_ms)
                        : absl::InfiniteFuture();
}

}  // namespace

Hub::Hub(RosterOptions options)
    : roster_(std::move(options)),
      barriers_([this](int rank) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return roster_.Name(rank);
      }) {}

Hub::Reactor* Hub::Join(Context* context, const v1::JoinRequest& request,
                        v1::JoinResponse* response) {
  WaitingCall* call =
      NewCall(WaitingCall::Kind::kJoin, request.caller(), context);
  call->join = response;
  call->deadline = DeadlineIn(request.timeout_ms());
  Outbox outbox;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckServing();
    if (status.ok()) status = roster_.Join(request, absl::Now());
    if (status.ok()) {
      waiting_.Add(call);
    } else {
      outbox.answers.emplace_back(call, status);
    }
    Settle(&outbox);
  }
  outbox.Deliver();
  return call;
}

Hub::Reactor* Hub::ReportFailure(Context* context,
                                 const v1::ReportFailureRequest& request,
                                 v1::ReportFailureResponse* response) {
  WaitingCall* call =
      NewCall(WaitingCall::Kind::kReport, request.caller(), context);
  call->report = response;
  Outbox outbox;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckServing();
    if (status.ok()) status = roster_.Check(request.caller());
    // Whoever was lost may still hear why.
    if (absl::IsUnavailable(status) && roster_.failure()) {
      status = absl::OkStatus();
    } else if (status.ok()) {
      status = roster_.ReportFailure(request.caller(), request.failure(),
                                     absl::Now());
    }
    if (status.ok() && roster_.undecided()) {
      waiting_.Add(call);
    } else {
      FillAnswer(call);
      outbox.answers.emplace_back(call, status);
    }
    Settle(&outbox);
  }
  outbox.Deliver();
  return call;
}

Hub::Reactor* Hub::Barrier(Context* context,
                           const v1::BarrierRequest& request) {
  WaitingCall* call =
      NewCall(WaitingCall::Kind::kBarrier, request.caller(), context);
  Barriers::Entry entry;
  entry.name = request.name();
  entry.ranks.insert(request.ranks().begin(), request.ranks().end());
  entry.rank = request.caller().rank();
  entry.deadline = DeadlineIn(request.timeout_ms());
  Outbox outbox;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckRank(request.caller());
    const int world_size = roster_.options().world_size;
    entry.everyone = request.ranks().empty();
    for (int rank = 0; entry.everyone && rank < world_size; ++rank) {
      if (roster_.Gone(rank) && roster_.Replaceable(rank)) continue;
      entry.ranks.insert(entry.ranks.end(), rank);
    }
    for (const int rank : entry.ranks) {
      if (!status.ok()) break;
      if (rank < 0 || rank >= world_size) {
        status = absl::InvalidArgumentError(
            fmt::format("barrier '{}': rank {} is outside [0, {})",
                        OneLine(entry.name), rank, world_size));
      } else if (roster_.Gone(rank)) {
        status = absl::UnavailableError(
            fmt::format("barrier '{}': rank {} has gone", OneLine(entry.name),
                        roster_.Name(rank)));
      }
    }
    if (status.ok()) {
      waiting_.Add(call);  // the barrier keeps the deadline
      entry.ticket = call->ticket;
      AnswerBarriers(barriers_.Enter(entry), &outbox);
    } else {
      outbox.answers.emplace_back(call, status);
    }
    Settle(&outbox);
  }
  outbox.Deliver();
  return call;
}

Hub::Reactor* Hub::Finish(Context* context, const v1::FinishRequest& request) {
  return AnswerRank(context, request.caller(),
                    [&](Outbox*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                      roster_.Finish(request.reason());
                      return absl::OkStatus();
                    });
}

Hub::Reactor* Hub::Stop(Context* context, const v1::StopRequest& request) {
  const auto gate = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (request.has_caller()) return CheckRank(request.caller());
    RETURN_IF_ERROR(CheckServing());
    return roster_.CheckJob(request.job_uid(), request.attempt());
  };
  return AnswerNow(context, gate,
                   [&](Outbox*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                     roster_.Stop(request);
                     return absl::OkStatus();
                   });
}

Hub::Reactor* Hub::GetProgress(Context* context,
                               const v1::GetProgressRequest& request,
                               v1::Progress* response) {
  return AnswerNow(
      context,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return roster_.CheckJob(request.job_uid(), request.attempt());
      },
      [&](Outbox*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        *response = roster_.Progress();
        return absl::OkStatus();
      });
}

bool Hub::HeartbeatRead(const std::shared_ptr<HeartbeatStream>& stream,
                        const v1::HeartbeatRequest& request) {
  const absl::Time now = absl::Now();
  Outbox outbox;
  absl::Status status;
  std::shared_ptr<HeartbeatStream> replaced;
  {
    absl::MutexLock lock(&mu_);
    status = CheckServing();
    if (status.ok()) status = roster_.Check(request.caller());
    const int rank = request.caller().rank();
    const auto known = stream_ranks_.find(stream->id());
    if (status.ok() && known == stream_ranks_.end()) {
      replaced = std::exchange(streams_[rank], stream);
      stream_ranks_[stream->id()] = rank;
      roster_.StreamStarted(rank, stream->id(), now);
      for (const v1::Event& event : roster_.CatchUp()) stream->Enqueue(event);
    } else if (status.ok() && known->second != rank) {
      status = absl::InvalidArgumentError(
          fmt::format("the stream is rank {}'s, the message says rank {}",
                      known->second, rank));
    }
    if (status.ok()) {
      v1::Event alive;
      alive.mutable_alive();
      stream->Enqueue(alive);
      outbox.flushes.push_back(stream);
      roster_.Heard(rank, request, now);
    }
    Settle(&outbox);
    outbox.failure = roster_.failure();
  }
  if (replaced != nullptr) {
    replaced->End(absl::CancelledError("the rank has a newer stream"),
                  std::nullopt);
  }
  outbox.Deliver();
  if (status.ok()) return true;
  HeartbeatEnded(*stream);
  stream->End(status, outbox.failure);
  return false;
}

void Hub::HeartbeatEnded(const HeartbeatStream& stream) {
  Outbox outbox;
  {
    absl::MutexLock lock(&mu_);
    const auto known = stream_ranks_.find(stream.id());
    if (known == stream_ranks_.end()) return;
    const int rank = known->second;
    stream_ranks_.erase(known);
    const auto current = streams_.find(rank);
    if (current != streams_.end() && current->second.get() == &stream) {
      streams_.erase(current);
    }
    roster_.StreamEnded(rank, stream.id(), absl::Now());
    Settle(&outbox);
  }
  outbox.Deliver();
}

v1::Progress Hub::Progress() {
  absl::MutexLock lock(&mu_);
  return roster_.Progress();
}

Hub::Reactor* Hub::Set(Context* context, const v1::SetRequest& request) {
  return AnswerRank(
      context, request.caller(),
      [&](Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        RETURN_IF_ERROR(request.append()
                            ? store_.Append(request.key(), request.value())
                            : store_.Set(request.key(), request.value()));
        KeySet(request.key(), outbox);
        return absl::OkStatus();
      });
}

Hub::Reactor* Hub::Get(Context* context, const v1::GetRequest& request,
                       v1::GetResponse* response) {
  WaitingCall* call =
      NewCall(WaitingCall::Kind::kKeys, request.caller(), context);
  call->keys.push_back(request.key());
  call->get = response;
  return WaitForKeys(call, request.timeout_ms());
}

Hub::Reactor* Hub::Wait(Context* context, const v1::WaitRequest& request) {
  WaitingCall* call =
      NewCall(WaitingCall::Kind::kKeys, request.caller(), context);
  call->keys.assign(request.keys().begin(), request.keys().end());
  return WaitForKeys(call, request.timeout_ms());
}

Hub::Reactor* Hub::WaitForKeys(WaitingCall* call, int64_t timeout_ms) {
  call->deadline = DeadlineIn(timeout_ms);
  Outbox outbox;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckRank(call->caller);
    for (const std::string& key : call->keys) {
      if (status.ok()) status = store_.CheckKey(key);
    }
    while (call->next_key < call->keys.size() &&
           store_.Find(call->keys[call->next_key]) != nullptr) {
      ++call->next_key;
    }
    if (status.ok() && call->next_key < call->keys.size()) {
      waiting_.Add(call);
    } else {
      if (status.ok()) FillAnswer(call);
      outbox.answers.emplace_back(call, status);
    }
    Settle(&outbox);
  }
  outbox.Deliver();
  return call;
}

Hub::Reactor* Hub::Check(Context* context, const v1::CheckRequest& request,
                         v1::CheckResponse* response) {
  return AnswerRank(
      context, request.caller(),
      [&](Outbox*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        const auto exists = [&](const std::string& key)
                                ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                                  return store_.Find(key) != nullptr;
                                };
        response->set_all_exist(
            std::all_of(request.keys().begin(), request.keys().end(), exists));
        return absl::OkStatus();
      });
}

Hub::Reactor* Hub::Add(Context* context, const v1::AddRequest& request,
                       v1::AddResponse* response) {
  return AnswerRank(context, request.caller(),
                    [&](Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                      const auto sum =
                          store_.Add(request.key(), request.amount());
                      RETURN_IF_ERROR(sum.status());
                      response->set_value(*sum);
                      KeySet(request.key(), outbox);
                      return absl::OkStatus();
                    });
}

Hub::Reactor* Hub::CompareSet(Context* context,
                              const v1::CompareSetRequest& request,
                              v1::CompareSetResponse* response) {
  return AnswerRank(context, request.caller(),
                    [&](Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                      auto value = store_.CompareSet(
                          request.key(), request.expected(), request.desired());
                      RETURN_IF_ERROR(value.status());
                      response->set_value(*std::move(value));
                      KeySet(request.key(), outbox);
                      return absl::OkStatus();
                    });
}

Hub::Reactor* Hub::Delete(Context* context, const v1::DeleteRequest& request,
                          v1::DeleteResponse* response) {
  return AnswerRank(context, request.caller(),
                    [&](Outbox*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                      response->set_existed(store_.Delete(request.key()));
                      return absl::OkStatus();
                    });
}

Hub::Reactor* Hub::CountKeys(Context* context,
                             const v1::CountKeysRequest& request,
                             v1::CountKeysResponse* response) {
  return AnswerRank(context, request.caller(),
                    [&](Outbox*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                      response->set_count(store_.Count());
                      return absl::OkStatus();
                    });
}

}  // namespace disttrain
