// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "worker/transport/endpoint.h"
#include "worker/transport/hello.h"
#include "worker/transport/send_queue.h"

namespace disttrain::transport {

class Connection;

// One incarnation of a peer, as this process sees it.
//
// Threads: the queue is thread-safe, the rest is guarded by the endpoint's
// lock.
struct Peer {
  Peer(PeerAddress where, uint64_t queue_limit, std::atomic<uint64_t>& sent)
      : address(std::move(where)), queue(queue_limit, sent) {}

  const PeerAddress address;
  SendQueue queue;
  Link link = Link::kNone;
  std::shared_ptr<Connection> connection;  // if kConnected
  // A higher incarnation has taken its place: its end is no news.
  bool replaced = false;
};

}  // namespace disttrain::transport
