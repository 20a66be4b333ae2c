// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/agent.h"

#include <stdexcept>
#include <utility>

#include "worker/rpc/core.h"
#include "worker/rpc/current_call.h"

namespace disttrain::rpc {
namespace {

thread_local CallRecorder* current_recorder = nullptr;

}  // namespace

CallRecorder::Scope::Scope(CallRecorder* recorder)
    : previous_(std::exchange(current_recorder, recorder)) {}

CallRecorder::Scope::~Scope() { current_recorder = previous_; }

CallRecorder* CallRecorder::Current() { return current_recorder; }

bool InCall() { return internal::ServedCall::Current() != nullptr; }

bool CallCancelled() {
  const internal::ServedCall* call = internal::ServedCall::Current();
  return call != nullptr &&
         (call->cancelled() || absl::Now() >= call->deadline());
}

CallInfo CurrentCall() {
  const internal::ServedCall* call = internal::ServedCall::Current();
  if (call == nullptr) {
    throw std::logic_error("CurrentCall: this thread serves no call");
  }
  return {.caller = call->caller(),
          .deadline = call->deadline(),
          .cancelled = CallCancelled()};
}

struct Agent::Scope::State {
  internal::Core::Scope scope;
};

Agent::Scope::Scope(Agent& agent)
    : state_(new State{internal::Core::Scope(agent.core_)}) {}

Agent::Scope::~Scope() = default;

std::unique_ptr<Agent> Agent::Start(AgentOptions options) {
  if (options.endpoint == nullptr) {
    throw std::invalid_argument("AgentOptions::endpoint is not set");
  }
  bool listed = false;
  for (const Peer& peer : options.peers) {
    listed = listed || peer == options.self;
  }
  if (!listed) options.peers.push_back(options.self);
  auto core = std::make_shared<internal::Core>(std::move(options));
  core->Start();
  return std::unique_ptr<Agent>(new Agent(std::move(core)));
}

Agent::Agent(std::shared_ptr<internal::Core> core) : core_(std::move(core)) {}

Agent::~Agent() { core_->Shutdown(absl::Now()); }

const Peer& Agent::self() const { return core_->self(); }

std::vector<Peer> Agent::peers() const { return core_->peers().All(); }

void Agent::Drop(const Peer& peer, const std::string& reason) {
  core_->Drop(peer, reason);
}

void Agent::Replace(const Peer& peer, const std::string& address) {
  core_->Replace(peer, address);
}

bool Agent::Shutdown(absl::Time deadline) { return core_->Shutdown(deadline); }

void Agent::Abort(const std::string& reason) { core_->Abort(reason); }

std::string Agent::DebugCalls() const { return core_->DebugCalls(); }

AgentStatistics Agent::statistics() const { return core_->statistics(); }

}  // namespace disttrain::rpc
