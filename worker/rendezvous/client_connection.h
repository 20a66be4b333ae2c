// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.grpc.pb.h"
#include "grpcpp/client_context.h"
#include "worker/rendezvous/client.h"

namespace disttrain {

// The trailing metadata with which the server marks its own answers.
struct AnswerMarks {
  // The server itself gave this status; not the transport.
  bool answered = false;
  std::optional<v1::Failure> failure;
};
AnswerMarks MarksOf(const grpc::ClientContext& context);

// The channel to rank 0, the calls in flight on it, and why all of them ended.
//
// Threads: thread-safe.
class RendezvousClient::Connection {
 public:
  // What can be sent again although it may have arrived before.
  enum class Retry { kNever, kWhileBroken };
  using Stub = v1::Rendezvous::StubInterface;

  explicit Connection(ClientOptions options);

  const ClientOptions& options() const { return options_; }

  // Sends a request until it is answered. See RendezvousClient for the errors.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
                    Request request, Response* response, absl::Time deadline,
                    Retry retry) {
    *request.mutable_caller() = options_.caller;
    return Send(
        [&](Stub& stub, grpc::ClientContext* context) {
          return (stub.*method)(context, request, response);
        },
        deadline, retry);
  }

  using SendFunction =
      std::function<grpc::Status(Stub& stub, grpc::ClientContext* context)>;
  absl::Status Send(const SendFunction& send, absl::Time deadline, Retry retry);

  // Sends a Join until it is answered, dialling anew each time.
  absl::Status Join(v1::JoinRequest request, v1::JoinResponse* response,
                    absl::Time deadline);

  std::shared_ptr<v1::Rendezvous::Stub> stub() const;

  // The first failure counts: it ends all calls. `on_failure` is told.
  void RecordFailure(const v1::Failure& failure);
  void OnFailure(std::function<void()> on_failure);
  std::optional<v1::Failure> failure() const;
  void Cancel(const std::string& reason);

  // Names rank 0 in messages once the roster is known.
  void SetServer(const v1::Member& member);
  v1::Member server() const;
  // "rank 0 (agent 0, pod x)".
  std::string ServerName() const;

 private:
  // One try. `answered`: the server itself gave the status.
  absl::Status SendOnce(const SendFunction& send, absl::Time deadline,
                        bool* answered);
  void Dial();
  void End(const absl::Status& why);
  // Waits a little, less if all calls are ended.
  void Pause(absl::Duration duration);
  bool Ended() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended_.has_value();
  }

  const ClientOptions options_;
  mutable absl::Mutex mu_;
  std::shared_ptr<v1::Rendezvous::Stub> stub_ ABSL_GUARDED_BY(mu_);
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::Failure> failure_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_failure_ ABSL_GUARDED_BY(mu_);
  v1::Member server_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
