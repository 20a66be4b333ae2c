// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback_endpoint.h"

#include <cstring>

#include "fmt/format.h"

namespace disttrain::fakes {
namespace {

// Set while this thread reads for an endpoint.
thread_local LoopbackEndpoint* leading_for = nullptr;

}  // namespace

std::unique_ptr<LoopbackEndpoint> LoopbackNetwork::Make(transport::PeerId id) {
  auto endpoint = std::make_unique<LoopbackEndpoint>(*this, id);
  absl::MutexLock lock(&mu_);
  endpoints_[id.rank] = endpoint.get();
  left_.erase(id.rank);
  return endpoint;
}

void LoopbackNetwork::Kill(int rank) {
  absl::MutexLock lock(&mu_);
  const auto it = endpoints_.find(rank);
  if (it == endpoints_.end()) return;
  LoopbackEndpoint* const victim = it->second;
  endpoints_.erase(it);
  {
    absl::MutexLock victim_lock(&victim->mu_);
    victim->dead_ = true;
    victim->inbox_.clear();
  }
  for (auto& [other, endpoint] : endpoints_) {
    endpoint->Push(
        {.from = victim->id_, .message = {}, .lost = true, .left = false});
  }
}

LoopbackEndpoint::LoopbackEndpoint(LoopbackNetwork& network,
                                   transport::PeerId id)
    : network_(network), id_(id) {}

LoopbackEndpoint::~LoopbackEndpoint() { Close(absl::Now()); }

std::string LoopbackEndpoint::address() const {
  return fmt::format("loopback:{}", id_.rank);
}

void LoopbackEndpoint::Start(std::vector<transport::PeerAddress>,
                             transport::Handler* handler) {
  absl::MutexLock lock(&mu_);
  handler_ = handler;
  EnsureReader();
}

void LoopbackEndpoint::Replace(const transport::PeerAddress&) {}

absl::Status LoopbackEndpoint::Send(int rank, transport::Message message,
                                    absl::Time) {
  uint64_t bytes = 0;
  for (const transport::ConstBuffer& buffer : message.buffers) {
    bytes += buffer.size;
  }
  if (bytes > network_.limits_.message_bytes ||
      message.header.size() > network_.limits_.header_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("message of {} bytes is over the limit of {}", bytes,
                    network_.limits_.message_bytes));
  }
  {
    absl::MutexLock lock(&mu_);
    if (dead_ || closing_) return absl::CancelledError("closed");
  }
  absl::MutexLock lock(&network_.mu_);
  const auto it = network_.endpoints_.find(rank);
  if (it == network_.endpoints_.end()) {
    // Its goodbye is under way to us, as on a connection that still stands.
    if (network_.left_.contains(rank)) return absl::OkStatus();
    return absl::UnavailableError("connection refused");
  }
  it->second->Push({.from = id_,
                    .message = std::move(message),
                    .lost = false,
                    .left = false});
  return absl::OkStatus();
}

void LoopbackEndpoint::Inject(transport::PeerId from,
                              transport::Message message) {
  Push({.from = from,
        .message = std::move(message),
        .lost = false,
        .left = false});
}

void LoopbackEndpoint::Push(Event event) {
  absl::MutexLock lock(&mu_);
  if (dead_ || closing_) return;
  inbox_.push_back(std::move(event));
}

void LoopbackEndpoint::EnsureReader() {
  if (idle_ == 0 && !closing_) {
    threads_.emplace_back([this] { PoolThread(); });
  }
}

void LoopbackEndpoint::PoolThread() {
  mu_.Lock();
  while (true) {
    ++idle_;
    mu_.Await(absl::Condition(this, &LoopbackEndpoint::PoolMayRead));
    --idle_;
    if (closing_) break;
    ReadOne();
  }
  mu_.Unlock();
}

void LoopbackEndpoint::ReadOne() {
  leading_ = true;
  leading_for = this;
  Event event = std::move(inbox_.front());
  inbox_.pop_front();
  mu_.Unlock();
  Deliver(std::move(event));
  mu_.Lock();
  if (leading_for == this) {
    leading_ = false;
    leading_for = nullptr;
  }
}

void LoopbackEndpoint::Deliver(Event event) {
  if (event.lost) {
    handler_->OnPeerLost(event.from,
                         absl::UnavailableError("connection closed"));
    return;
  }
  if (event.left) {
    handler_->OnPeerLeft(event.from);
    return;
  }
  std::vector<uint64_t> sizes;
  for (const transport::ConstBuffer& buffer : event.message.buffers) {
    sizes.push_back(buffer.size);
  }
  transport::ReceivedMessage received;
  received.header = std::move(event.message.header);
  if (!sizes.empty()) {
    auto buffers = handler_->Allocate(event.from, received.header, sizes);
    if (!buffers.ok()) {
      handler_->OnPeerLost(event.from, buffers.status());
      return;
    }
    received.buffers = *std::move(buffers);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      std::memcpy(received.buffers[i].data, event.message.buffers[i].data,
                  sizes[i]);
    }
  }
  handler_->OnMessage(event.from, std::move(received));
}

bool LoopbackEndpoint::Wait(const std::function<bool()>& done,
                            absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  ++waiters_;
  const std::function<bool()> look = [&] {
    return closing_ || done() || (!leading_ && !inbox_.empty());
  };
  while (!done() && !closing_ && absl::Now() < deadline) {
    mu_.AwaitWithDeadline(absl::Condition(&look), deadline);
    if (!done() && !leading_ && !inbox_.empty() && !closing_) ReadOne();
  }
  --waiters_;
  return done();
}

void LoopbackEndpoint::Wake() {
  absl::MutexLock lock(&mu_);  // unlocking looks at all conditions
}

void LoopbackEndpoint::ReleaseLeadership() {
  if (leading_for != this) return;
  leading_for = nullptr;
  absl::MutexLock lock(&mu_);
  leading_ = false;
  EnsureReader();
}

void LoopbackEndpoint::Close(absl::Time) {
  {
    absl::MutexLock lock(&network_.mu_);
    const auto it = network_.endpoints_.find(id_.rank);
    if (it != network_.endpoints_.end() && it->second == this) {
      network_.endpoints_.erase(it);
      network_.left_.insert(id_.rank);
      for (auto& [other, endpoint] : network_.endpoints_) {
        endpoint->Push(
            {.from = id_, .message = {}, .lost = false, .left = true});
      }
    }
  }
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

transport::Endpoint::Statistics LoopbackEndpoint::statistics() const {
  absl::MutexLock lock(&mu_);
  Statistics statistics;
  statistics.threads = static_cast<int>(threads_.size());
  statistics.idle_threads = idle_;
  return statistics;
}

}  // namespace disttrain::fakes
