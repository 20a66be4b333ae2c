// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/send_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/transport/frame.h"

namespace disttrain::transport {
namespace {

constexpr size_t kMaxParts = 256;
// A sender writes so much of others' before it leaves the rest to the reactor.
constexpr size_t kSenderBudget = size_t{64} << 20;

}  // namespace

absl::Status SendQueue::Admit(uint64_t bytes, absl::Time deadline,
                              absl::FunctionRef<void()> before_blocking) {
  if (!end_.ok() || finishing_ || Fits(bytes)) return end_;
  mu_.Unlock();
  before_blocking();
  mu_.Lock();
  const auto ready = [this, bytes]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !end_.ok() || finishing_ || Fits(bytes);
  };
  if (!mu_.AwaitWithDeadline(absl::Condition(&ready), deadline)) {
    return absl::DeadlineExceededError(
        fmt::format("{} bytes wait to be sent, {} more do not fit into the "
                    "limit of {}: the peer does not read",
                    outbox_.bytes(), bytes, bytes_limit_));
  }
  return end_;
}

absl::Status SendQueue::Push(Message message, absl::Time deadline,
                             absl::FunctionRef<void()> before_blocking) {
  const uint64_t bytes = ContentBytes(message) + Outbox::kMessageBytes;
  {
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(Admit(bytes, deadline, before_blocking));
    if (finishing_) return absl::CancelledError("endpoint is closed");
    // What was queued before an error stays to no purpose.
    if (broken_) return absl::OkStatus();
    outbox_.Push(std::move(message));
    if (stream_ == nullptr || writing_ || stalled_) return absl::OkStatus();
  }
  Pump(kSenderBudget);
  return absl::OkStatus();
}

void SendQueue::Attach(std::shared_ptr<Stream> stream, std::string preface,
                       std::function<void(bool)> want_writable) {
  absl::MutexLock lock(&mu_);
  if (!end_.ok()) return;
  stream_ = std::move(stream);
  want_writable_ = std::move(want_writable);
  if (!preface.empty()) outbox_.PushFirst(std::move(preface));
}

void SendQueue::Want(bool writable) {
  if (stalled_ == writable) return;
  stalled_ = writable;
  if (want_writable_) want_writable_(writable);
}

bool SendQueue::WriteSome(size_t& budget, Outbox::Garbage& garbage) {
  std::array<iovec, kMaxParts> parts;
  const size_t count =
      end_.ok() && !broken_ ? outbox_.Gather(absl::MakeSpan(parts)) : 0;
  if (count == 0 || budget == 0) {
    writing_ = false;
    Want(count > 0);
    return false;
  }
  const std::shared_ptr<Stream> stream = stream_;
  mu_.Unlock();
  garbage.clear();
  const IoResult result =
      stream->Write(absl::MakeConstSpan(parts).subspan(0, count));
  mu_.Lock();
  switch (result.kind) {
    case IoResult::Kind::kDone:
      sent_.fetch_add(result.bytes, std::memory_order_relaxed);
      outbox_.Consume(result.bytes, garbage);
      budget -= std::min(budget, result.bytes);
      return true;
    case IoResult::Kind::kWouldBlock:
      writing_ = false;
      Want(end_.ok());
      return false;
    case IoResult::Kind::kEnd:
    case IoResult::Kind::kError:
      // The reader finds a goodbye that came before, or the end.
      broken_ = true;
      return true;
  }
  return false;
}

void SendQueue::Pump(size_t budget) {
  Outbox::Garbage garbage;
  absl::MutexLock lock(&mu_);
  if (stream_ == nullptr || writing_) return;
  writing_ = true;
  bool more = true;
  while (more) more = WriteSome(budget, garbage);
  if (!end_.ok() || broken_) outbox_.Clear(garbage);
}

void SendQueue::Finish() {
  {
    absl::MutexLock lock(&mu_);
    if (finishing_) return;
    finishing_ = true;
    outbox_.PushGoodbye();
    if (stream_ == nullptr || writing_ || stalled_) return;
  }
  Pump(kSenderBudget);
}

bool SendQueue::AwaitFinished(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto finished = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return Finished();
  };
  return mu_.AwaitWithDeadline(absl::Condition(&finished), deadline);
}

void SendQueue::End(const absl::Status& reason) {
  Outbox::Garbage garbage;
  // The connection, which both of them hold, holds us.
  std::shared_ptr<Stream> stream;
  std::function<void(bool)> want_writable;
  absl::MutexLock lock(&mu_);
  if (!end_.ok()) return;
  end_ = reason;
  stream.swap(stream_);
  want_writable.swap(want_writable_);
  // A thread that writes clears when it comes back.
  if (!writing_) outbox_.Clear(garbage);
}

}  // namespace disttrain::transport
