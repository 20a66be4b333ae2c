// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/heartbeat_stream.h"

#include <atomic>
#include <utility>

#include "proto/runtime/status.h"
#include "worker/rendezvous/hub.h"
#include "worker/rendezvous/waiting_calls.h"

namespace disttrain {
namespace {

std::atomic<uint64_t> last_id{0};

}  // namespace

HeartbeatStream::HeartbeatStream(std::shared_ptr<Hub> hub,
                                 grpc::CallbackServerContext* context)
    : id_(++last_id), hub_(std::move(hub)), context_(context) {}

HeartbeatStream* HeartbeatStream::Start(std::shared_ptr<Hub> hub,
                                        grpc::CallbackServerContext* context) {
  std::shared_ptr<HeartbeatStream> stream(
      new HeartbeatStream(std::move(hub), context));
  {
    absl::MutexLock lock(&stream->mu_);
    stream->self_ = stream;
  }
  stream->StartRead(&stream->request_);
  return stream.get();
}

void HeartbeatStream::Enqueue(const v1::Event& event) {
  absl::MutexLock lock(&mu_);
  if (end_) return;
  if (event.has_alive() && !queue_.empty() && queue_.back().has_alive()) return;
  queue_.push_back(event);
}

void HeartbeatStream::Flush() {
  bool write = false;
  bool finish = false;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    if (is_writing_ || finished_) return;
    if (!queue_.empty() && !broken_) {
      writing_ = std::move(queue_.front());
      queue_.pop_front();
      is_writing_ = write = true;
    } else if (end_) {
      finished_ = finish = true;
      status = *end_;
      AddAnswerMetadata(status, end_failure_, context_);
    }
  }
  if (write) StartWrite(&writing_);
  if (finish) Finish(ToGrpc(status));
}

void HeartbeatStream::End(const absl::Status& status,
                          const std::optional<v1::Failure>& failure) {
  {
    absl::MutexLock lock(&mu_);
    if (!end_) {
      end_ = status;
      end_failure_ = failure;
    }
  }
  Flush();
}

void HeartbeatStream::OnReadDone(bool ok) {
  std::shared_ptr<HeartbeatStream> self;
  {
    absl::MutexLock lock(&mu_);
    self = self_;
  }
  if (!ok) {
    hub_->HeartbeatEnded(*this);
    End(absl::OkStatus(), std::nullopt);
    return;
  }
  if (hub_->HeartbeatRead(self, request_)) StartRead(&request_);
}

void HeartbeatStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    is_writing_ = false;
    if (!ok) broken_ = true;
  }
  Flush();
}

void HeartbeatStream::OnCancel() {
  {
    absl::MutexLock lock(&mu_);
    broken_ = true;
  }
  hub_->HeartbeatEnded(*this);
  End(absl::CancelledError("the connection broke"), std::nullopt);
}

void HeartbeatStream::OnDone() {
  std::shared_ptr<HeartbeatStream> self;
  absl::MutexLock lock(&mu_);
  self = std::move(self_);
}

}  // namespace disttrain
