// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/client_connection.h"
#include "worker/rendezvous/client_heartbeat.h"
#include "worker/rendezvous/listen_address.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

// For calls that never wait on another rank, and take no deadline.
constexpr absl::Duration kControlTimeout = absl::Seconds(10);

absl::Time SoonEnough() { return absl::Now() + kControlTimeout; }

// For timeout_ms: 0 is "no limit".
int64_t MillisecondsUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return 0;
  return std::max<int64_t>(1,
                           absl::ToInt64Milliseconds(deadline - absl::Now()));
}

uint64_t RandomProcess() {
  std::random_device random;
  const uint64_t high = random();
  return (high << 32 | random()) | 1;
}

using Stub = v1::Rendezvous::StubInterface;

}  // namespace

RendezvousClient::RendezvousClient(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

RendezvousClient::~RendezvousClient() {
  StopHeartbeat();
  connection_->Cancel("the rendezvous client was closed");
}

absl::StatusOr<std::unique_ptr<RendezvousClient>> RendezvousClient::Connect(
    const ClientOptions& options) {
  ClientOptions checked = options;
  ASSIGN_OR_RETURN(const ControlAddress address,
                   ParseControlAddress(options.target));
  if (!address.is_unix() && address.port == 0) {
    return absl::InvalidArgumentError(
        fmt::format("address '{}': port 0 cannot be dialled", options.target));
  }
  checked.target = address.Text();
  if (options.caller.rank() < 0 || options.caller.attempt() < 0 ||
      options.caller.incarnation() < 0) {
    return absl::InvalidArgumentError(
        fmt::format("rank {}, attempt {}, incarnation {}: none may be negative",
                    options.caller.rank(), options.caller.attempt(),
                    options.caller.incarnation()));
  }
  if (checked.caller.process() == 0) {
    checked.caller.set_process(RandomProcess());
  }
  return std::unique_ptr<RendezvousClient>(
      new RendezvousClient(std::make_unique<Connection>(std::move(checked))));
}

absl::StatusOr<std::vector<v1::Member>> RendezvousClient::Join(
    const v1::Member& self, int world_size, absl::Time deadline) {
  v1::JoinRequest request;
  request.set_world_size(world_size);
  *request.mutable_self() = self;
  v1::JoinResponse response;
  RETURN_IF_ERROR(connection_->Join(request, &response, deadline));
  if (response.members_size() != world_size) {
    return absl::InternalError(
        fmt::format("the roster has {} members, {} were expected",
                    response.members_size(), world_size));
  }
  connection_->SetServer(response.members(0));
  return std::vector<v1::Member>(response.members().begin(),
                                 response.members().end());
}

void RendezvousClient::StartHeartbeat(
    absl::Duration interval, std::function<v1::Report()> report,
    std::function<void(const v1::Event&)> on_event) {
  heartbeat_ = std::make_unique<HeartbeatLoop>(
      *connection_, interval, std::move(report), std::move(on_event));
}

void RendezvousClient::StopHeartbeat() {
  if (heartbeat_ != nullptr) heartbeat_->Stop();
}

absl::Status RendezvousClient::ReportFailure(const v1::Failure& failure) {
  if (connection_->failure()) return absl::OkStatus();
  v1::ReportFailureRequest request;
  *request.mutable_failure() = failure;
  request.mutable_failure()->set_cause(OneLine(failure.cause()));
  v1::ReportFailureResponse response;
  const absl::Status status =
      connection_->Call(&Stub::ReportFailure, request, &response, SoonEnough(),
                        Connection::Retry::kWhileBroken);
  if (status.ok() && response.has_first()) {
    connection_->RecordFailure(response.first());
  }
  // Somebody else's came first: that is no error of this report.
  return connection_->failure() ? absl::OkStatus() : status;
}

absl::Status RendezvousClient::Barrier(const std::string& name,
                                       const std::vector<int>& ranks,
                                       absl::Time deadline) {
  v1::BarrierRequest request;
  request.set_name(OneLine(name));
  request.mutable_ranks()->Assign(ranks.begin(), ranks.end());
  request.set_timeout_ms(MillisecondsUntil(deadline));
  v1::BarrierResponse response;
  return connection_->Call(&Stub::Barrier, request, &response, deadline,
                           Connection::Retry::kNever);
}

absl::Status RendezvousClient::Finish(const std::string& reason) {
  v1::FinishRequest request;
  request.set_reason(OneLine(reason));
  v1::FinishResponse response;
  return connection_->Call(&Stub::Finish, request, &response, SoonEnough(),
                           Connection::Retry::kWhileBroken);
}

absl::Status RendezvousClient::Stop(bool save, const std::string& reason,
                                    absl::Duration grace) {
  v1::StopRequest request;
  request.set_save(save);
  request.set_reason(OneLine(reason));
  request.set_grace_ms(absl::ToInt64Milliseconds(grace));
  v1::StopResponse response;
  return connection_->Call(&Stub::Stop, request, &response, SoonEnough(),
                           Connection::Retry::kWhileBroken);
}

absl::Status RendezvousClient::Set(const std::string& key,
                                   const std::string& value,
                                   absl::Time deadline) {
  v1::SetRequest request;
  request.set_key(key);
  request.set_value(value);
  v1::SetResponse response;
  return connection_->Call(&Stub::Set, std::move(request), &response, deadline,
                           Connection::Retry::kWhileBroken);
}

absl::Status RendezvousClient::Append(const std::string& key,
                                      const std::string& value,
                                      absl::Time deadline) {
  v1::SetRequest request;
  request.set_key(key);
  request.set_value(value);
  request.set_append(true);
  v1::SetResponse response;
  return connection_->Call(&Stub::Set, std::move(request), &response, deadline,
                           Connection::Retry::kNever);
}

absl::StatusOr<std::string> RendezvousClient::Get(const std::string& key,
                                                  absl::Time deadline) {
  v1::GetRequest request;
  request.set_key(key);
  request.set_timeout_ms(MillisecondsUntil(deadline));
  v1::GetResponse response;
  RETURN_IF_ERROR(connection_->Call(&Stub::Get, request, &response, deadline,
                                    Connection::Retry::kWhileBroken));
  return std::move(*response.mutable_value());
}

absl::Status RendezvousClient::Wait(const std::vector<std::string>& keys,
                                    absl::Time deadline) {
  v1::WaitRequest request;
  request.mutable_keys()->Assign(keys.begin(), keys.end());
  request.set_timeout_ms(MillisecondsUntil(deadline));
  v1::WaitResponse response;
  return connection_->Call(&Stub::Wait, std::move(request), &response, deadline,
                           Connection::Retry::kWhileBroken);
}

absl::StatusOr<bool> RendezvousClient::Check(
    const std::vector<std::string>& keys, absl::Time deadline) {
  v1::CheckRequest request;
  request.mutable_keys()->Assign(keys.begin(), keys.end());
  v1::CheckResponse response;
  RETURN_IF_ERROR(connection_->Call(&Stub::Check, std::move(request), &response,
                                    deadline, Connection::Retry::kWhileBroken));
  return response.all_exist();
}

absl::StatusOr<int64_t> RendezvousClient::Add(const std::string& key,
                                              int64_t amount,
                                              absl::Time deadline) {
  v1::AddRequest request;
  request.set_key(key);
  request.set_amount(amount);
  v1::AddResponse response;
  RETURN_IF_ERROR(connection_->Call(&Stub::Add, request, &response, deadline,
                                    Connection::Retry::kNever));
  return response.value();
}

absl::StatusOr<std::string> RendezvousClient::CompareSet(
    const std::string& key, const std::string& expected,
    const std::string& desired, absl::Time deadline) {
  v1::CompareSetRequest request;
  request.set_key(key);
  request.set_expected(expected);
  request.set_desired(desired);
  v1::CompareSetResponse response;
  RETURN_IF_ERROR(connection_->Call(&Stub::CompareSet, std::move(request),
                                    &response, deadline,
                                    Connection::Retry::kNever));
  return std::move(*response.mutable_value());
}

absl::StatusOr<bool> RendezvousClient::Delete(const std::string& key,
                                              absl::Time deadline) {
  v1::DeleteRequest request;
  request.set_key(key);
  v1::DeleteResponse response;
  RETURN_IF_ERROR(connection_->Call(&Stub::Delete, request, &response, deadline,
                                    Connection::Retry::kNever));
  return response.existed();
}

absl::StatusOr<int64_t> RendezvousClient::CountKeys(absl::Time deadline) {
  v1::CountKeysResponse response;
  RETURN_IF_ERROR(connection_->Call(&Stub::CountKeys, v1::CountKeysRequest(),
                                    &response, deadline,
                                    Connection::Retry::kWhileBroken));
  return response.count();
}

absl::StatusOr<v1::Progress> RendezvousClient::GetProgress(
    absl::Time deadline) {
  v1::GetProgressRequest request;
  request.set_job_uid(connection_->options().caller.job_uid());
  request.set_attempt(connection_->options().caller.attempt());
  v1::Progress progress;
  RETURN_IF_ERROR(connection_->Send(
      [&](Stub& stub, grpc::ClientContext* context) {
        return stub.GetProgress(context, request, &progress);
      },
      deadline, Connection::Retry::kWhileBroken));
  return progress;
}

void RendezvousClient::Cancel(const std::string& reason) {
  connection_->Cancel(reason);
}

std::optional<v1::Failure> RendezvousClient::failure() const {
  return connection_->failure();
}

const v1::Caller& RendezvousClient::caller() const {
  return connection_->options().caller;
}

}  // namespace disttrain
