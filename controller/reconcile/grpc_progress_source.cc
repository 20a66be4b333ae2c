// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/grpc_progress_source.h"

#include <chrono>

#include "disttrain/v1/rendezvous.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

constexpr std::chrono::seconds kGetTimeout{5};
constexpr std::chrono::seconds kStopTimeout{2};
// A Progress is a few hundred bytes; a stranger on that port must not make us
// take more.
constexpr int kMaxReply = 64 << 10;
// What a pod gets between SIGTERM and SIGKILL unless its template says more.
constexpr int64_t kGraceMs = 30'000;

std::unique_ptr<v1::Rendezvous::Stub> StubFor(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReply);
  // Not shared with another call to the same address: an earlier attempt's
  // connection must not answer for this one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return v1::Rendezvous::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace

absl::StatusOr<v1::Progress> GrpcProgressSource::Get(
    const Job& job, int attempt, const std::string& address) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kGetTimeout);
  v1::GetProgressRequest request;
  request.set_job_uid(job.uid);
  request.set_attempt(attempt);
  v1::Progress progress;
  const grpc::Status status =
      StubFor(address)->GetProgress(&context, request, &progress);
  if (!status.ok()) return Annotate(FromGrpc(status), address);
  return progress;
}

absl::Status GrpcProgressSource::Stop(const Job& job, int attempt,
                                      const std::string& address, bool save,
                                      const std::string& reason) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kStopTimeout);
  v1::StopRequest request;
  request.set_job_uid(job.uid);
  request.set_attempt(attempt);
  request.set_save(save);
  request.set_reason(reason);
  request.set_grace_ms(kGraceMs);
  v1::StopResponse response;
  return Annotate(
      FromGrpc(StubFor(address)->Stop(&context, request, &response)), address);
}

}  // namespace disttrain
