// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/data_endpoint.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "proto/runtime/status.h"
#include "worker/transport/hello.h"

namespace disttrain::transport {
namespace {

// Strangers that may wait at the door at one time; the oldest has to go first.
constexpr size_t kMaxGreetings = 256;
// How long Close waits for peers to take notice, after all is written.
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr size_t kFirstBudget = size_t{1} << 20;
constexpr uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP;

absl::Status Closed() { return absl::CancelledError("endpoint is closed"); }

}  // namespace

DataEndpoint::DataEndpoint(const EndpointOptions& options, std::string address,
                           std::unique_ptr<Reactor> reactor)
    : options_(options),
      address_(std::move(address)),
      log_(Log().With(
          {{"rank", options.self.rank}, {"attempt", options.attempt}})),
      reactor_(std::move(reactor)) {}

DataEndpoint::~DataEndpoint() { Close(absl::Now()); }

absl::Status DataEndpoint::Init(Listener listener) {
  acceptor_ = std::make_shared<Acceptor>(
      std::move(listener), [this](UniqueFd fd) { OnAccept(std::move(fd)); },
      [this](const absl::Status& status) {
        log_.Error("connection not accepted", status);
      });
  return reactor_->Add(acceptor_, EPOLLIN);
}

DataEndpoint::PeerPtr DataEndpoint::MakePeer(const PeerAddress& address) {
  return std::make_shared<Peer>(address, options_.limits.send_queue_bytes,
                                sent_bytes_);
}

void DataEndpoint::Start(std::vector<PeerAddress> peers, Handler* handler) {
  handler_ = handler;
  {
    absl::MutexLock lock(&mu_);
    for (const PeerAddress& peer : peers) {
      if (peer.id.rank != options_.self.rank) {
        peers_[peer.id.rank] = MakePeer(peer);
      }
    }
  }
  reactor_->Start();
}

void DataEndpoint::Replace(const PeerAddress& address) {
  PeerPtr old;
  {
    absl::MutexLock lock(&mu_);
    PeerPtr& slot = peers_[address.id.rank];
    if (slot && slot->address.id.incarnation >= address.id.incarnation) return;
    old = std::exchange(slot, MakePeer(address));
    if (!old) return;
    old->replaced = true;
    if (old->connection) old->connection->stream()->Shutdown();
    old->connection = nullptr;
  }
  old->queue.End(absl::UnavailableError(
      fmt::format("was replaced by incarnation {}", address.id.incarnation)));
}

absl::StatusOr<DataEndpoint::PeerPtr> DataEndpoint::FindPeer(int rank) {
  if (closed_) return Closed();
  const auto found = peers_.find(rank);
  if (found != peers_.end()) return found->second;
  return absl::InvalidArgumentError(
      rank == options_.self.rank
          ? fmt::format("rank {} is this process itself", rank)
          : fmt::format("rank {} is none of the {} peers", rank,
                        peers_.size()));
}

absl::Status DataEndpoint::Send(int rank, Message message,
                                absl::Time deadline) {
  RETURN_IF_ERROR(CheckLimits(message, options_.limits));
  PeerPtr peer;
  {
    absl::ReaderMutexLock lock(&mu_);
    ASSIGN_OR_RETURN(peer, FindPeer(rank));
    if (peer->link != Link::kNone) rank = -1;
  }
  if (rank >= 0) StartDial(peer);
  return Annotate(peer->queue.Push(std::move(message), deadline,
                                   [this] { ReleaseLeadership(); }),
                  Name(peer->address.id));
}

bool DataEndpoint::Wait(const std::function<bool()>& done,
                        absl::Time deadline) {
  return reactor_->Wait(done, deadline);
}

bool DataEndpoint::OnLentThread() const { return reactor_->OnLentThread(); }

void DataEndpoint::Run(std::function<void()> task) {
  reactor_->Run(std::move(task));
}

Hello DataEndpoint::HelloTo(const PeerId& peer) const {
  return {kProtocolVersion, options_.attempt, options_.self, peer,
          options_.job_uid};
}

void DataEndpoint::StartDial(const PeerPtr& peer) {
  {
    absl::MutexLock lock(&mu_);
    if (peer->link != Link::kNone || peer->replaced || closed_) return;
    peer->link = Link::kConnecting;
  }
  const absl::Status status = BeginDial(peer);
  if (status.ok()) return;
  // Not on this thread, which may hold locks that the handler needs.
  reactor_->Run([this, peer, status] { OnDialled(peer, status); });
}

absl::Status DataEndpoint::BeginDial(const PeerPtr& peer) {
  Dial dial;
  ASSIGN_OR_RETURN(dial.address, ParseAddress(peer->address.address));
  dial.hello = HelloTo(peer->address.id);
  dial.deadline = absl::Now() + options_.connect_timeout;
  dial.enter = [this, peer](Link link) { return EnterDial(peer, link); };
  return dialer_.Start(
      std::move(dial),
      [this, peer](absl::StatusOr<std::unique_ptr<Stream>> stream) {
        OnDialled(peer, std::move(stream));
      });
}

bool DataEndpoint::EnterDial(const PeerPtr& peer, Link link) {
  absl::MutexLock lock(&mu_);
  const bool dialling =
      peer->link == Link::kConnecting || peer->link == Link::kGreeting;
  if (!dialling || peer->replaced) return false;
  peer->link = link;
  return true;
}

void DataEndpoint::OnDialled(const PeerPtr& peer,
                             absl::StatusOr<std::unique_ptr<Stream>> stream) {
  absl::Status status = stream.status();
  bool told = true;
  {
    absl::MutexLock lock(&mu_);
    if (peer->link != Link::kConnecting && peer->link != Link::kGreeting) {
      return;
    }
    if (status.ok() && !peer->replaced) {
      auto connection = std::make_shared<Connection>(
          *std::move(stream), options_.limits, true, *this, received_bytes_);
      connection->Bind(peer);
      status = reactor_->Add(connection, kReadEvents);
      if (status.ok()) Establish(connection, "");
    }
    if (!status.ok()) peer->link = Link::kLost;
    told = !peer->replaced && !closed_;
  }
  if (status.ok()) return peer->queue.Pump(kFirstBudget);
  peer->queue.End(status);
  if (!told) return;
  handler_->OnPeerLost(peer->address.id,
                       Annotate(status, Name(peer->address.id)));
}

void DataEndpoint::Establish(const ConnectionPtr& connection,
                             std::string preface) {
  const PeerPtr& peer = connection->peer();
  peer->link = Link::kConnected;
  peer->connection = connection;
  ++connections_;
  peer->queue.Attach(connection->stream(), std::move(preface),
                     [reactor = reactor_.get(), connection](bool writable) {
                       reactor->Modify(*connection, writable
                                                        ? kReadEvents | EPOLLOUT
                                                        : kReadEvents);
                     });
}

void DataEndpoint::OnAccept(UniqueFd fd) {
  auto connection = std::make_shared<Connection>(
      std::make_shared<PlainStream>(std::move(fd)), options_.limits, false,
      *this, received_bytes_);
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mu_);
  for (const ConnectionPtr& overdue : OverdueGreetings(now)) {
    overdue->stream()->Shutdown();
  }
  const absl::Status status = reactor_->Add(connection, kReadEvents);
  if (!status.ok()) return log_.Error("connection not accepted", status);
  greetings_.push_back({connection, now + options_.connect_timeout});
}

std::vector<DataEndpoint::ConnectionPtr> DataEndpoint::OverdueGreetings(
    absl::Time now) {
  std::vector<ConnectionPtr> overdue;
  while (!greetings_.empty() && (greetings_.front().deadline < now ||
                                 greetings_.size() >= kMaxGreetings)) {
    overdue.push_back(greetings_.front().connection);
    greetings_.pop_front();
  }
  return overdue;
}

std::optional<Refusal> DataEndpoint::Judge(const Hello& hello) {
  std::optional<KnownPeer> known;
  if (const auto found = peers_.find(hello.from.rank); found != peers_.end()) {
    known = {found->second->address.id.incarnation, found->second->link};
  }
  if (auto refusal = CheckHello(hello, HelloTo(hello.from), known)) {
    return refusal;
  }
  // Closing, only what is queued is still written.
  if (!closed_ || known->link != Link::kNone) return std::nullopt;
  return Refusal{Refusal::Kind::kFinal,
                 fmt::format("{} is closing", Name(options_.self))};
}

absl::Status DataEndpoint::OnHello(const ConnectionPtr& connection,
                                   const Hello& hello) {
  std::optional<Refusal> refusal;
  {
    absl::MutexLock lock(&mu_);
    Forget(connection);
    refusal = Judge(hello);
    if (!refusal) {
      connection->Bind(peers_[hello.from.rank]);
      Establish(connection, EncodeFrame(FrameType::kHello,
                                        EncodeHello(HelloTo(hello.from))));
    }
  }
  if (!refusal) {
    connection->peer()->queue.Pump(kFirstBudget);
    return absl::OkStatus();
  }
  const std::string frame =
      EncodeFrame(FrameType::kRefuse, EncodeRefusal(*refusal));
  const iovec part{const_cast<char*>(frame.data()), frame.size()};
  // A new socket takes that much; if it is broken there is nobody to tell.
  connection->stream()->Write(absl::MakeConstSpan(&part, 1));
  connection->stream()->EndWriting();
  if (refusal->kind == Refusal::Kind::kFinal) {
    log_.Warn("connection refused", {{"reason", refusal->text}});
  }
  return absl::PermissionDeniedError(refusal->text);
}

absl::StatusOr<std::vector<MutableBuffer>> DataEndpoint::Allocate(
    PeerId from, std::string_view header, absl::Span<const uint64_t> sizes) {
  return handler_->Allocate(from, header, sizes);
}

void DataEndpoint::OnMessage(PeerId from, ReceivedMessage message) {
  handler_->OnMessage(from, std::move(message));
}

void DataEndpoint::Forget(const ConnectionPtr& connection) {
  greetings_.remove_if([&connection](const Greeting& greeting) {
    return greeting.connection == connection;
  });
}

absl::AnyInvocable<void()> DataEndpoint::OnEnd(const ConnectionPtr& connection,
                                               const absl::Status& reason) {
  reactor_->Remove(*connection);
  const PeerPtr& peer = connection->peer();
  bool told = true;
  {
    absl::MutexLock lock(&mu_);
    Forget(connection);
    if (!peer) return {};
    --connections_;
    peer->connection = nullptr;
    peer->link = reason.ok() ? Link::kLeft : Link::kLost;
    told = !peer->replaced && !closed_;
  }
  peer->queue.End(reason.ok() ? absl::UnavailableError("has said goodbye")
                              : reason);
  if (!told) return {};
  return [this, id = peer->address.id, reason] {
    if (reason.ok()) {
      handler_->OnPeerLeft(id);
    } else {
      handler_->OnPeerLost(id, Annotate(reason, Name(id)));
    }
  };
}

std::optional<std::vector<DataEndpoint::PeerPtr>> DataEndpoint::BeginClose() {
  std::vector<PeerPtr> active;
  std::vector<PeerPtr> unused;
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(closed_, true)) return std::nullopt;
    for (const auto& [rank, peer] : peers_) {
      (peer->link == Link::kNone ? unused : active).push_back(peer);
    }
  }
  for (const PeerPtr& peer : unused) peer->queue.End(Closed());
  return active;
}

void DataEndpoint::EndWriting() {
  absl::MutexLock lock(&mu_);
  for (const auto& [rank, peer] : peers_) {
    if (peer->connection) peer->connection->stream()->EndWriting();
  }
}

void DataEndpoint::Close(absl::Time deadline) {
  const std::optional<std::vector<PeerPtr>> active = BeginClose();
  if (!active) return;
  for (const PeerPtr& peer : *active) peer->queue.Finish();
  for (const PeerPtr& peer : *active) peer->queue.AwaitFinished(deadline);
  EndWriting();
  {
    // A peer that reads the goodbye ends its side, having read all before it.
    absl::MutexLock lock(&mu_);
    const auto all_gone = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return connections_ == 0;
    };
    mu_.AwaitWithDeadline(absl::Condition(&all_gone),
                          std::min(deadline, absl::Now() + kLinger));
  }
  dialer_.Stop();
  reactor_->Stop();
  for (const PeerPtr& peer : *active) {
    peer->queue.End(Closed());
  }
  acceptor_.reset();
  // Each holds its peer, which holds it.
  absl::MutexLock lock(&mu_);
  for (const auto& [rank, peer] : peers_) peer->connection = nullptr;
}

Endpoint::Statistics DataEndpoint::statistics() const {
  Statistics statistics;
  statistics.sent_bytes = sent_bytes_.load(std::memory_order_relaxed);
  statistics.received_bytes = received_bytes_.load(std::memory_order_relaxed);
  statistics.threads = reactor_->threads();
  statistics.idle_threads = reactor_->idle_threads();
  absl::MutexLock lock(&mu_);
  statistics.connections = connections_;
  return statistics;
}

}  // namespace disttrain::transport
