// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/runtime/status.h"

namespace disttrain::transport {
namespace {

// From this size on bytes are read to where they belong, not staged.
constexpr size_t kDirectBytes = 4096;
// What the leader writes in one turn before it looks at others again.
constexpr size_t kTurnBudget = size_t{1} << 20;

}  // namespace

Connection::Connection(std::shared_ptr<Stream> stream, const Limits& limits,
                       bool greeted, Owner& owner,
                       std::atomic<uint64_t>& received)
    : stream_(std::move(stream)),
      owner_(owner),
      received_(received),
      decoder_(limits, greeted),
      staging_(new char[kStagingBytes]) {}

Channel::Turn Connection::OnReady(uint32_t events) {
  if (ended_) return {};
  if ((events & EPOLLOUT) != 0 && peer_) peer_->queue.Pump(kTurnBudget);
  const bool readable = (events & ~uint32_t{EPOLLOUT}) != 0;
  if (staged_begin_ == staged_end_ && (readable || stream_->HasBuffered())) {
    if (std::optional<Turn> turn = Read()) return *std::move(turn);
  }
  return Digest();
}

std::optional<Channel::Turn> Connection::Read() {
  const absl::Span<char> target = decoder_.Target();
  const bool direct = target.size() >= kDirectBytes;
  // Past a chunk only the next frame's header, so that the chunk that follows
  // is read to where it belongs as well.
  const std::array<iovec, 2> into = {
      iovec{target.data(), direct ? target.size() : 0},
      iovec{staging_.get(), direct ? kFrameHeaderBytes : kStagingBytes}};
  const IoResult result =
      stream_->Read(absl::MakeConstSpan(into).subspan(direct ? 0 : 1));
  switch (result.kind) {
    case IoResult::Kind::kWouldBlock:
      return Turn{};
    case IoResult::Kind::kEnd:
      return End(absl::UnavailableError(
          decoder_.AtBoundary() ? "the connection was closed without a goodbye"
                                : "the connection was closed amid a message"));
    case IoResult::Kind::kError:
      return End(result.error);
    case IoResult::Kind::kDone:
      break;
  }
  received_.fetch_add(result.bytes, std::memory_order_relaxed);
  const size_t placed = direct ? std::min(result.bytes, target.size()) : 0;
  staged_begin_ = 0;
  staged_end_ = result.bytes - placed;
  if (placed == 0) return std::nullopt;
  return Advance(placed);
}

Channel::Turn Connection::Digest() {
  while (staged_begin_ < staged_end_) {
    const absl::Span<char> target = decoder_.Target();
    const size_t bytes = std::min(target.size(), staged_end_ - staged_begin_);
    std::memcpy(target.data(), staging_.get() + staged_begin_, bytes);
    staged_begin_ += bytes;
    if (std::optional<Turn> turn = Advance(bytes)) return *std::move(turn);
  }
  Turn turn;
  turn.more = stream_->HasBuffered();
  return turn;
}

std::optional<Channel::Turn> Connection::Advance(size_t bytes) {
  return Handle(decoder_.Advance(bytes));
}

std::optional<Channel::Turn> Connection::Handle(
    absl::StatusOr<Decoder::Event> event) {
  if (event.ok() && std::holds_alternative<Decoder::NeedBuffers>(*event)) {
    event = ProvideBuffers();
  }
  if (!event.ok()) return End(event.status());
  if (const Hello* hello = std::get_if<Hello>(&*event)) {
    const absl::Status status = owner_.OnHello(shared_from_this(), *hello);
    if (!status.ok()) return End(status);
    return std::nullopt;
  }
  if (std::holds_alternative<Decoder::Goodbye>(*event)) {
    return End(absl::OkStatus());
  }
  if (auto* message = std::get_if<ReceivedMessage>(&*event)) {
    return Deliver(std::move(*message));
  }
  return std::nullopt;
}

absl::StatusOr<Decoder::Event> Connection::ProvideBuffers() {
  ASSIGN_OR_RETURN(
      std::vector<MutableBuffer> buffers,
      owner_.Allocate(peer_->address.id, decoder_.header(), decoder_.sizes()));
  return decoder_.SetBuffers(std::move(buffers));
}

Channel::Turn Connection::Deliver(ReceivedMessage message) {
  Turn turn;
  turn.more = staged_begin_ < staged_end_ || stream_->HasBuffered();
  turn.deliver = [this, keep = peer_, message = std::move(message)]() mutable {
    owner_.OnMessage(keep->address.id, std::move(message));
  };
  return turn;
}

Channel::Turn Connection::End(const absl::Status& reason) {
  ended_ = true;
  Turn turn;
  turn.deliver = owner_.OnEnd(shared_from_this(), reason);
  return turn;
}

}  // namespace disttrain::transport
