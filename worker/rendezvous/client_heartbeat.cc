// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/client_heartbeat.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "grpcpp/support/client_callback.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

constexpr absl::Duration kReconnectPause = absl::Milliseconds(100);
constexpr absl::Duration kGoodbye = absl::Milliseconds(250);

}  // namespace

// One call of Heartbeat. Its reactions only note what happened, under the
// loop's lock; the loop's thread acts.
class RendezvousClient::HeartbeatLoop::Stream final
    : public grpc::ClientBidiReactor<v1::HeartbeatRequest, v1::Event> {
 public:
  // `loop.mu_` must not be held.
  Stream(HeartbeatLoop& loop, v1::Rendezvous::Stub& stub) : loop_(loop) {
    stub.async()->Heartbeat(&context_, this);
    AddHold();  // this thread starts writes outside reactions
    StartRead(&event_);
    StartCall();
  }

  // Only if !writing.
  void Write(const v1::HeartbeatRequest& request) {
    {
      absl::MutexLock lock(&loop_.mu_);
      writing = true;
    }
    request_ = request;
    if (request.leaving()) {
      StartWriteLast(&request_, grpc::WriteOptions());
    } else {
      StartWrite(&request_);
    }
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&loop_.mu_);
      if (ok) {
        loop_.events_.push_back(event_);
      } else {
        read_over = true;
      }
    }
    if (ok) StartRead(&event_);
  }

  void OnWriteDone(bool /*ok*/) override {
    absl::MutexLock lock(&loop_.mu_);
    writing = false;
  }

  void OnDone(const grpc::Status& result) override {
    absl::MutexLock lock(&loop_.mu_);
    status = result;
    done = true;
  }

  grpc::ClientContext& context() { return context_; }

  // Guarded by loop.mu_.
  bool writing = false;
  bool read_over = false;
  bool done = false;
  grpc::Status status;

 private:
  HeartbeatLoop& loop_;
  grpc::ClientContext context_;
  v1::HeartbeatRequest request_;
  v1::Event event_;
};

RendezvousClient::HeartbeatLoop::HeartbeatLoop(
    Connection& connection, absl::Duration interval,
    std::function<v1::Report()> report,
    std::function<void(const v1::Event&)> on_event)
    : connection_(connection),
      interval_(interval),
      report_(std::move(report)),
      on_event_(std::move(on_event)) {
  connection_.OnFailure([this] {
    absl::MutexLock lock(&mu_);
    wake_ = true;
  });
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "heartbeat");
    Run();
  });
}

RendezvousClient::HeartbeatLoop::~HeartbeatLoop() {
  connection_.OnFailure(nullptr);
  Stop();
}

void RendezvousClient::HeartbeatLoop::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void RendezvousClient::HeartbeatLoop::Run() {
  while (true) {
    RunStream();
    DeliverFailure();
    if (failure_delivered_ || finish_seen_ || stop_seen_) return;
    absl::MutexLock lock(&mu_);
    const auto interrupted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stop_ || wake_;
    };
    mu_.AwaitWithTimeout(absl::Condition(&interrupted), kReconnectPause);
    if (stop_) return;
  }
}

void RendezvousClient::HeartbeatLoop::RunStream() {
  const std::shared_ptr<v1::Rendezvous::Stub> stub = connection_.stub();
  Stream stream(*this, *stub);
  next_beat_ = heard_ = absl::Now();
  while (Step(stream)) {
  }
  Close(stream);
  bool stopped = false;
  grpc::Status status;
  std::deque<v1::Event> last;
  {
    absl::MutexLock lock(&mu_);
    stopped = stop_;
    status = stream.status;
    last.swap(events_);
  }
  for (const v1::Event& event : last) Handle(event);
  if (!stopped) Judge(FromGrpc(status), MarksOf(stream.context()));
}

bool RendezvousClient::HeartbeatLoop::Step(Stream& stream) {
  const absl::Time give_up =
      std::min(heard_ + connection_.options().server_timeout,
               broken_ + connection_.options().reconnect_grace);
  std::deque<v1::Event> events;
  bool stop = false;
  bool over = false;
  bool may_write = false;
  {
    absl::MutexLock lock(&mu_);
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stop_ || wake_ || stream.read_over || !events_.empty();
    };
    mu_.AwaitWithDeadline(absl::Condition(&ready),
                          std::min(next_beat_, give_up));
    events.swap(events_);
    wake_ = false;
    stop = stop_;
    over = stream.read_over;
    may_write = !stream.writing;
  }
  for (const v1::Event& event : events) Handle(event);
  DeliverFailure();
  if (over) return false;
  if (stop) {
    Goodbye(stream);
    return false;
  }
  const absl::Time now = absl::Now();
  if (!events.empty()) {
    heard_ = now;
  } else if (now >= give_up) {
    stream.context().TryCancel();
    return false;
  }
  if (now >= next_beat_) {
    next_beat_ = now + interval_;
    if (may_write) {
      v1::HeartbeatRequest request;
      *request.mutable_caller() = connection_.options().caller;
      *request.mutable_report() = report_();
      stream.Write(request);
    }
  }
  return true;
}

void RendezvousClient::HeartbeatLoop::Goodbye(Stream& stream) {
  {
    absl::MutexLock lock(&mu_);
    const auto idle = [&]() { return !stream.writing || stream.read_over; };
    mu_.AwaitWithTimeout(absl::Condition(&idle), kGoodbye);
    if (stream.writing || stream.read_over) return;
  }
  v1::HeartbeatRequest request;
  *request.mutable_caller() = connection_.options().caller;
  *request.mutable_report() = report_();
  request.set_leaving(true);
  stream.Write(request);
}

void RendezvousClient::HeartbeatLoop::Close(Stream& stream) {
  stream.RemoveHold();
  absl::MutexLock lock(&mu_);
  if (mu_.AwaitWithTimeout(absl::Condition(&stream.done), kGoodbye)) return;
  stream.context().TryCancel();
  mu_.Await(absl::Condition(&stream.done));
}

void RendezvousClient::HeartbeatLoop::Judge(const absl::Status& status,
                                            const AnswerMarks& marks) {
  if (marks.failure) connection_.RecordFailure(*marks.failure);
  if (connection_.failure() || finish_seen_ || stop_seen_) return;
  if (marks.answered && !absl::IsUnavailable(status)) {
    v1::Member self;
    self.set_rank(connection_.options().caller.rank());
    FailAbout(self, fmt::format("refused by rank 0: {}", Message(status)));
    return;
  }
  const absl::Time now = absl::Now();
  broken_ = std::min(broken_, now);
  if (now - broken_ < connection_.options().reconnect_grace) return;
  FailAbout(connection_.server(),
            fmt::format("connection to its rendezvous at {} lost{}{}",
                        connection_.options().target, status.ok() ? "" : ": ",
                        Message(status)));
}

void RendezvousClient::HeartbeatLoop::FailAbout(const v1::Member& member,
                                                const std::string& cause) {
  v1::Failure failure;
  failure.set_rank(member.rank());
  failure.set_role(member.role());
  failure.set_pod(member.pod());
  failure.set_incarnation(member.incarnation());
  failure.set_cause(OneLine(cause));
  failure.set_time_ms(absl::ToUnixMillis(absl::Now()));
  connection_.RecordFailure(failure);
}

void RendezvousClient::HeartbeatLoop::Handle(const v1::Event& event) {
  broken_ = absl::InfiniteFuture();
  bool* seen = nullptr;
  switch (event.kind_case()) {
    case v1::Event::kFailure:
      connection_.RecordFailure(event.failure());
      return;
    case v1::Event::kFinish:
      seen = &finish_seen_;
      break;
    case v1::Event::kStop:
      seen = &stop_seen_;
      break;
    case v1::Event::kLost:
    case v1::Event::kJoined:
      break;
    case v1::Event::kAlive:
    case v1::Event::KIND_NOT_SET:
      return;
  }
  if (seen != nullptr && std::exchange(*seen, true)) return;
  on_event_(event);
}

void RendezvousClient::HeartbeatLoop::DeliverFailure() {
  const std::optional<v1::Failure> failure = connection_.failure();
  if (!failure || failure_delivered_) return;
  failure_delivered_ = true;
  v1::Event event;
  *event.mutable_failure() = *failure;
  on_event_(event);
}

}  // namespace disttrain
