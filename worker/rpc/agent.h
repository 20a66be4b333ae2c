// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/rpc/call_observer.h"
#include "worker/rpc/call_recorder.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/registry.h"
#include "worker/transport/endpoint.h"

namespace disttrain::rpc {

namespace internal {
class Core;
}

struct AgentOptions {
  Peer self;
  // Everybody in the job; self may be among them.
  std::vector<Peer> peers;
  // Where they listen, as Join told.
  std::vector<transport::PeerAddress> addresses;
  // Listening, not yet started: the agent starts it and closes it. Outlives
  // the agent.
  transport::Endpoint* endpoint = nullptr;
  // Classes that peers may create here: Remotes<Agent, Observer>().
  Registry registry;

  // Calls that name no timeout of their own; zero: no deadline.
  absl::Duration default_timeout = absl::Seconds(60);
  // Calls of peers in progress; above it they are refused (Overloaded).
  size_t max_running_calls = 4096;

  // All three may be null; they outlive the agent.
  CallObserver* observer = nullptr;
  CallReceiver* call_receiver = nullptr;  // see call_recorder.h
  // A peer was lost: its pending calls have failed already. Runs on a call
  // thread; may block.
  std::function<void(const Peer& peer, const std::string& reason)> on_peer_lost;
};

// One process's end of all remote calls.
//
// Several agents may live in one process. A thread's current agent is the one
// of its innermost Scope; methods and continuations that an agent runs have
// that agent.
//
// Threads: thread-safe. Blocking: only Shutdown.
class Agent {
 public:
  // Starts the endpoint; from here on peers may call.
  static std::unique_ptr<Agent> Start(AgentOptions options);

  // Without Shutdown before: cancels everything and closes at once.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Makes the agent the calling thread's; it outlives the scope.
  class Scope {
   public:
    explicit Scope(Agent& agent);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  const Peer& self() const;
  // Current lives of all ranks, ascending.
  std::vector<Peer> peers() const;

  // The peer is gone, as somebody else has found out: its pending calls fail
  // with PeerLost. Does nothing if that life of it is over already.
  void Drop(const Peer& peer, const std::string& reason);

  // A rank came back under a higher incarnation. References to and of its
  // former life stay lost.
  void Replace(const Peer& peer, const std::string& address);

  // Refuses new calls (ShuttingDown), lets those in flight end until
  // `deadline`, cancels the rest (each caller gets an error), gives back all
  // references, says goodbye and closes the endpoint. Idempotent.
  // Returns false if a method is stuck and its thread was left behind.
  bool Shutdown(absl::Time deadline);

  // Fails everything in flight with Cancelled and refuses what comes after, so
  // that every waiting thread of this process gets on. Does not block.
  void Abort(const std::string& reason);

  // Calls in flight, to and from whom and since when, as one JSON object.
  std::string DebugCalls() const;
  AgentStatistics statistics() const;

 private:
  explicit Agent(std::shared_ptr<internal::Core> core);

  std::shared_ptr<internal::Core> core_;
};

}  // namespace disttrain::rpc
