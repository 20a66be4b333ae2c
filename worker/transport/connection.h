// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/transport/decoder.h"
#include "worker/transport/endpoint.h"
#include "worker/transport/peer.h"
#include "worker/transport/reactor.h"
#include "worker/transport/stream.h"

namespace disttrain::transport {

// The reading side of one connection, and its place in the reactor.
//
// Small messages come through a staging buffer, many with one read; what is
// bigger is read straight into the memory that the handler gave.
// Threads: OnReady by the leader; Bind before the first turn or within one;
// Shutdown from any thread.
class Connection final : public Channel,
                         public std::enable_shared_from_this<Connection> {
 public:
  // Who is told what comes; it outlives the connection.
  class Owner {
   public:
    virtual ~Owner() = default;

    // The first frame of an accepted connection. Calls Bind, or returns why the
    // connection must end.
    virtual absl::Status OnHello(const std::shared_ptr<Connection>& connection,
                                 const Hello& hello) = 0;
    virtual absl::StatusOr<std::vector<MutableBuffer>> Allocate(
        PeerId from, std::string_view header,
        absl::Span<const uint64_t> sizes) = 0;
    virtual void OnMessage(PeerId from, ReceivedMessage message) = 0;

    // Nothing more comes: after a goodbye (OK), or because of `reason`. What it
    // returns is run by the leader.
    virtual absl::AnyInvocable<void()> OnEnd(
        const std::shared_ptr<Connection>& connection,
        const absl::Status& reason) = 0;
  };

  // `greeted`: false if the peer's HELLO is still to come.
  Connection(std::shared_ptr<Stream> stream, const Limits& limits, bool greeted,
             Owner& owner, std::atomic<uint64_t>& received);

  int fd() const override { return stream_->fd(); }
  Turn OnReady(uint32_t events) override;

  // From here on messages come from `peer`, and its queue is pumped.
  void Bind(std::shared_ptr<Peer> peer) { peer_ = std::move(peer); }
  const std::shared_ptr<Peer>& peer() const { return peer_; }
  const std::shared_ptr<Stream>& stream() const { return stream_; }

 private:
  static constexpr size_t kStagingBytes = size_t{32} << 10;

  // Reads once, into the staging buffer or past it.
  std::optional<Turn> Read();
  // Takes in what is staged, up to the first message.
  Turn Digest();
  std::optional<Turn> Advance(size_t bytes);
  std::optional<Turn> Handle(absl::StatusOr<Decoder::Event> event);
  absl::StatusOr<Decoder::Event> ProvideBuffers();
  Turn Deliver(ReceivedMessage message);
  Turn End(const absl::Status& reason);

  const std::shared_ptr<Stream> stream_;
  Owner& owner_;
  std::atomic<uint64_t>& received_;
  Decoder decoder_;
  std::shared_ptr<Peer> peer_;
  std::unique_ptr<char[]> staging_;
  size_t staged_begin_ = 0;
  size_t staged_end_ = 0;
  bool ended_ = false;
};

}  // namespace disttrain::transport
