// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/client_connection.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/key_value.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

// So much later than the caller's deadline a call is given up: until then the
// server's own answer, which says more, may come.
constexpr absl::Duration kAnswerSlack = absl::Seconds(1);
constexpr absl::Duration kRetryPause = absl::Milliseconds(50);
constexpr absl::Duration kMaxJoinPause = absl::Seconds(1);

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A half-open connection is noticed within 20 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // Also how long one connection attempt may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  // A client has its own connection, and no proxy stands between ranks.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  return arguments;
}

}  // namespace

AnswerMarks MarksOf(const grpc::ClientContext& context) {
  AnswerMarks marks;
  const auto& metadata = context.GetServerTrailingMetadata();
  marks.answered = metadata.contains(kAnswerMetadata);
  const auto it = metadata.find(kFailureMetadata);
  if (it == metadata.end()) return marks;
  v1::Failure failure;
  if (failure.ParseFromArray(it->second.data(),
                             static_cast<int>(it->second.size()))) {
    marks.failure = failure;
  }
  return marks;
}

RendezvousClient::Connection::Connection(ClientOptions options)
    : options_(std::move(options)) {
  Dial();
}

void RendezvousClient::Connection::Dial() {
  std::shared_ptr<v1::Rendezvous::Stub> stub =
      v1::Rendezvous::NewStub(grpc::CreateCustomChannel(
          options_.target,
          options_.credentials != nullptr ? options_.credentials
                                          : grpc::InsecureChannelCredentials(),
          Arguments()));
  absl::MutexLock lock(&mu_);
  stub_ = std::move(stub);
}

std::shared_ptr<v1::Rendezvous::Stub> RendezvousClient::Connection::stub()
    const {
  absl::MutexLock lock(&mu_);
  return stub_;
}

absl::Status RendezvousClient::Connection::SendOnce(const SendFunction& send,
                                                    absl::Time deadline,
                                                    bool* answered) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline + kAnswerSlack));
  std::shared_ptr<v1::Rendezvous::Stub> stub;
  *answered = true;
  {
    absl::MutexLock lock(&mu_);
    if (ended_) return *ended_;
    calls_.insert(&context);
    stub = stub_;
  }
  absl::Status status = FromGrpc(send(*stub, &context));
  {
    absl::MutexLock lock(&mu_);
    calls_.erase(&context);
  }
  if (status.ok()) return status;
  const AnswerMarks marks = MarksOf(context);
  if (marks.failure) RecordFailure(*marks.failure);
  absl::MutexLock lock(&mu_);
  if (ended_) return *ended_;
  *answered = marks.answered;
  // So a server that goes away ends calls that it never answers.
  const bool broken =
      !marks.answered && (absl::IsCancelled(status) || absl::IsUnknown(status));
  return broken ? absl::UnavailableError(Message(status)) : status;
}

absl::Status RendezvousClient::Connection::Send(const SendFunction& send,
                                                absl::Time deadline,
                                                Retry retry) {
  absl::Time give_up = absl::InfiniteFuture();
  while (true) {
    bool answered = false;
    absl::Status status = SendOnce(send, deadline, &answered);
    if (status.ok() || answered) return status;
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(fmt::format(
          "{} at {} did not answer in time", ServerName(), options_.target));
    }
    if (!absl::IsUnavailable(status)) {
      return Annotate(status,
                      fmt::format("{} at {}", ServerName(), options_.target));
    }
    const absl::Time now = absl::Now();
    give_up = std::min({give_up, now + options_.reconnect_grace, deadline});
    if (retry == Retry::kNever || now >= give_up) {
      return absl::UnavailableError(fmt::format("lost {} at {}: {}",
                                                ServerName(), options_.target,
                                                OneLine(Message(status))));
    }
    Pause(kRetryPause);
  }
}

absl::Status RendezvousClient::Connection::Join(v1::JoinRequest request,
                                                v1::JoinResponse* response,
                                                absl::Time deadline) {
  *request.mutable_caller() = options_.caller;
  const absl::Time start = absl::Now();
  std::string why = "no connection was made";
  absl::Duration pause = kRetryPause;
  while (true) {
    if (deadline != absl::InfiniteFuture()) {
      request.set_timeout_ms(std::max<int64_t>(
          1, absl::ToInt64Milliseconds(deadline - absl::Now())));
    }
    bool answered = false;
    absl::Status status = SendOnce(
        [&](Stub& stub, grpc::ClientContext* context) {
          return stub.Join(context, request, response);
        },
        deadline, &answered);
    {
      absl::MutexLock lock(&mu_);
      if (status.ok() || ended_) return status;
    }
    const bool late = !answered && absl::IsDeadlineExceeded(status);
    if (!late && !absl::IsUnavailable(status)) return status;
    if (!late) why = OneLine(Message(status));
    if (late || absl::Now() >= deadline) {
      return absl::DeadlineExceededError(fmt::format(
          "rank 0 was not reached at {} within {}: {}", options_.target,
          absl::FormatDuration(absl::Trunc(deadline - start, absl::Seconds(1))),
          why));
    }
    Pause(std::min(pause, deadline - absl::Now()));
    pause = std::min(pause * 2, kMaxJoinPause);
    // A new channel resolves the name and dials at once; an old one waits.
    Dial();
  }
}

void RendezvousClient::Connection::Pause(absl::Duration duration) {
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(this, &Connection::Ended), duration);
}

void RendezvousClient::Connection::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!ended_) ended_ = why;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

void RendezvousClient::Connection::Cancel(const std::string& reason) {
  End(absl::CancelledError(reason));
}

void RendezvousClient::Connection::RecordFailure(const v1::Failure& failure) {
  std::function<void()> on_failure;
  {
    absl::MutexLock lock(&mu_);
    if (failure_) return;
    failure_ = failure;
    on_failure = on_failure_;
  }
  End(absl::UnavailableError(Describe(failure)));
  if (on_failure) on_failure();
}

void RendezvousClient::Connection::OnFailure(std::function<void()> on_failure) {
  absl::MutexLock lock(&mu_);
  on_failure_ = std::move(on_failure);
}

std::optional<v1::Failure> RendezvousClient::Connection::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

void RendezvousClient::Connection::SetServer(const v1::Member& member) {
  absl::MutexLock lock(&mu_);
  server_ = member;
}

v1::Member RendezvousClient::Connection::server() const {
  absl::MutexLock lock(&mu_);
  return server_;
}

std::string RendezvousClient::Connection::ServerName() const {
  return Describe(server());
}

}  // namespace disttrain
