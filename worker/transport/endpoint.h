// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace disttrain::transport {

// One life of one rank: a rank that was made again has a higher incarnation.
struct PeerId {
  int rank = 0;
  int incarnation = 0;
  bool operator==(const PeerId&) const = default;
};

struct PeerAddress {
  PeerId id;
  std::string address;  // "host:port", "[v6]:port" or "unix:/path"
};

// Bytes to send; `owner` keeps them alive until they are written.
struct ConstBuffer {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// Memory to read into; `owner` keeps it alive.
struct MutableBuffer {
  void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<void> owner;
};

// A small header and bytes that follow it. Nothing is copied: buffers are
// written from and read into the memory they name.
struct Message {
  std::string header;
  std::vector<ConstBuffer> buffers;
};

struct ReceivedMessage {
  std::string header;
  std::vector<MutableBuffer> buffers;
};

// Checked on both sides, on receipt before anything is allocated.
struct Limits {
  size_t header_bytes = 16 << 20;
  size_t buffers = 4096;
  uint64_t message_bytes = uint64_t{16} << 30;
  // Bytes waiting in one connection's send queue; above it Send blocks.
  uint64_t send_queue_bytes = uint64_t{64} << 20;
};

// What an Endpoint tells the layer above.
//
// Threads: called on whichever thread is reading (a pool thread, or one that
// waits in Endpoint::Wait). That thread is the leader and nobody else reads
// until it returns or calls Endpoint::ReleaseLeadership, which it must do
// before anything that may block or take long, above all before user code.
class Handler {
 public:
  virtual ~Handler() = default;

  // Memory for the buffers of a message whose header has come. Every size has
  // passed the limits. An error drops the connection and names the peer. Not
  // called for a message without buffers.
  virtual absl::StatusOr<std::vector<MutableBuffer>> Allocate(
      PeerId from, std::string_view header,
      absl::Span<const uint64_t> sizes) = 0;

  virtual void OnMessage(PeerId from, ReceivedMessage message) = 0;

  // The connection to `peer` ended without a goodbye, or never came to be.
  // Called once per incarnation (never for one that was replaced), on the
  // leader or on a thread that dialled. Queued messages to it are dropped.
  virtual void OnPeerLost(PeerId peer, const absl::Status& reason) = 0;

  // `peer` said goodbye: what it has not answered it never will.
  virtual void OnPeerLeft(PeerId) {}
};

struct EndpointOptions {
  std::string job_uid;
  int attempt = 0;
  PeerId self;
  // "unix:/folder/name.sock", or "host:0" (the kernel chooses the port); "" and
  // "*" as host: all addresses, IPv6 and IPv4.
  std::string listen;
  // The host in address() instead of the one listened on, e.g. the pod's IP.
  std::string advertise_host;
  Limits limits;
  // Threads that read and run methods: started as they are needed.
  int max_threads = 512;
  absl::Duration connect_timeout = absl::Seconds(10);
};

// This process's data connections: listens, dials on demand, one connection per
// pair of ranks (if both dial, the one from the lower rank stays).
//
// Threads: thread-safe. Leader and followers: one thread at a time polls and
// reads; it runs the handler itself, after another one has taken over reading.
class Endpoint {
 public:
  // Binds and listens, so that address() can be published in Join; accepts
  // only after Start. Errors: INVALID_ARGUMENT (address), ALREADY_EXISTS (in
  // use).
  static absl::StatusOr<std::unique_ptr<Endpoint>> Listen(
      const EndpointOptions& options);

  virtual ~Endpoint() = default;

  // What peers dial: a concrete port and host. For a wildcard the host is
  // advertise_host, else the first address of this machine that is not
  // loopback.
  virtual std::string address() const = 0;

  // From here on peers are accepted and may be called. `handler` outlives
  // Close().
  virtual void Start(std::vector<PeerAddress> peers, Handler* handler) = 0;

  // A peer came back under a higher incarnation: the older one is forgotten.
  virtual void Replace(const PeerAddress& peer) = 0;

  // Queues `message`, dialling first if need be. Order between two ranks is
  // kept per message size class only (small messages pass large ones).
  // Blocking: only while the send queue is over its limit, until `deadline`;
  // the leader gives up its lead first.
  // Errors: UNAVAILABLE (peer lost or gone), DEADLINE_EXCEEDED (queue full),
  // INVALID_ARGUMENT (over a limit; no such peer; this rank itself), CANCELLED
  // (closed).
  virtual absl::Status Send(int rank, Message message, absl::Time deadline) = 0;

  // Lends this thread to reading until `done()` or `deadline`. `done` is looked
  // at after each message that this thread has read and after each Wake(), on
  // this thread, with no lock of ours held: who makes it true on another thread
  // calls Wake. Returns done(). The thread runs handlers meanwhile; for long
  // work a handler has Run.
  virtual bool Wait(const std::function<bool()>& done, absl::Time deadline) = 0;

  // Something that a `done` in Wait looks at has changed.
  virtual void Wake() = 0;

  // For a Handler: lets another thread read from here on. Does nothing when the
  // calling thread is not the leader.
  virtual void ReleaseLeadership() = 0;

  // Whether this thread is lent: inside a Wait of this endpoint, so that what
  // it runs delays whoever waits.
  virtual bool OnLentThread() const { return false; }

  // Runs `task` on a thread of the pool, after Start. Dropped after Close.
  virtual void Run(std::function<void()> task) = 0;

  // Tells all peers goodbye, so that the ends of connections are no losses,
  // writes what is queued (until `deadline`), closes, joins the threads.
  // Blocking: past `deadline` for as long as a handler takes to return. Not to
  // be called by a Handler.
  virtual void Close(absl::Time deadline) = 0;

  struct Statistics {
    uint64_t sent_bytes = 0;
    uint64_t received_bytes = 0;
    int threads = 0;
    int idle_threads = 0;
    int connections = 0;
  };
  virtual Statistics statistics() const = 0;
};

}  // namespace disttrain::transport
