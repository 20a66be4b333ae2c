// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/transport/endpoint.h"

namespace disttrain::fakes {

class LoopbackEndpoint;

// Endpoints that reach each other in memory. Outlives them.
// Threads: thread-safe.
class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(transport::Limits limits = {}) : limits_(limits) {}

  std::unique_ptr<LoopbackEndpoint> Make(transport::PeerId id);

  // The process of `rank` dies: everyone else is told, nothing more comes from
  // it or arrives there.
  void Kill(int rank);

 private:
  friend class LoopbackEndpoint;

  const transport::Limits limits_;
  absl::Mutex mu_;
  std::map<int, LoopbackEndpoint*> endpoints_ ABSL_GUARDED_BY(mu_);
  std::set<int> left_ ABSL_GUARDED_BY(mu_);  // said goodbye
};

// An in-memory twin of the socket Endpoint: one inbox, read by one thread at a
// time (a pool thread or one in Wait), which runs the handler and gives up
// reading when told to. Bytes are copied once, from buffer to buffer.
class LoopbackEndpoint final : public transport::Endpoint {
 public:
  LoopbackEndpoint(LoopbackNetwork& network, transport::PeerId id);
  ~LoopbackEndpoint() override;

  std::string address() const override;
  void Start(std::vector<transport::PeerAddress> peers,
             transport::Handler* handler) override;
  void Replace(const transport::PeerAddress& peer) override;
  absl::Status Send(int rank, transport::Message message,
                    absl::Time deadline) override;
  bool Wait(const std::function<bool()>& done, absl::Time deadline) override;
  void Wake() override;
  void ReleaseLeadership() override;
  void Run(std::function<void()> task) override { std::move(task)(); }
  void Close(absl::Time deadline) override;
  Statistics statistics() const override;

  // Delivers a header (and buffers) as if `from` had sent it.
  void Inject(transport::PeerId from, transport::Message message);

 private:
  friend class LoopbackNetwork;
  struct Event {
    transport::PeerId from;
    transport::Message message;
    bool lost = false;
    bool left = false;
  };

  void Push(Event event);
  void EnsureReader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PoolThread();
  // Reads one event as the leader. Returns with mu_ held and leadership given
  // up if the handler did so.
  void ReadOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Deliver(Event event);
  bool PoolMayRead() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || (!leading_ && !inbox_.empty() && waiters_ == 0);
  }

  LoopbackNetwork& network_;
  const transport::PeerId id_;
  transport::Handler* handler_ = nullptr;

  mutable absl::Mutex mu_;
  std::deque<Event> inbox_ ABSL_GUARDED_BY(mu_);
  bool leading_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool dead_ ABSL_GUARDED_BY(mu_) = false;
  int waiters_ ABSL_GUARDED_BY(mu_) = 0;
  int idle_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain::fakes
