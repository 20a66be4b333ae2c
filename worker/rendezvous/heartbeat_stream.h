// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "disttrain/v1/rendezvous.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"

namespace disttrain {

class Hub;

// The server's end of one rank's heartbeat stream.
//
// Lives until gRPC is done with it and nobody else holds it.
// Threads: thread-safe. Lock order: the hub's before this one's.
class HeartbeatStream final
    : public grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::Event> {
 public:
  // For gRPC, which takes the returned pointer; starts to read.
  static HeartbeatStream* Start(std::shared_ptr<Hub> hub,
                                grpc::CallbackServerContext* context);

  // Unique in the process, never 0.
  uint64_t id() const { return id_; }

  // Puts an event into the queue, to be written by Flush: the caller may hold
  // locks. An `alive` that still waits is not doubled.
  void Enqueue(const v1::Event& event);
  void Flush();

  // Ends the stream after what is in the queue was written; only the first call
  // counts.
  void End(const absl::Status& status,
           const std::optional<v1::Failure>& failure);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  HeartbeatStream(std::shared_ptr<Hub> hub,
                  grpc::CallbackServerContext* context);

  const uint64_t id_;
  const std::shared_ptr<Hub> hub_;
  grpc::CallbackServerContext* const context_;
  v1::HeartbeatRequest request_;  // of the reading reactions only

  absl::Mutex mu_;
  std::shared_ptr<HeartbeatStream> self_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::Event> queue_ ABSL_GUARDED_BY(mu_);
  v1::Event writing_;  // changes under mu_; gRPC reads it while is_writing_
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  // No write succeeds any more.
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::Failure> end_failure_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace disttrain
