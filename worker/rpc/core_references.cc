// SPDX-License-Identifier: Apache-2.0
//
// References: what the table decides, done.
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/rpc/core.h"
#include "worker/rpc/error_codes.h"

namespace disttrain::rpc::internal {
namespace {

// Counts down the confirmations that a message waits for.
struct Outstanding {
  absl::Mutex mu;
  size_t left ABSL_GUARDED_BY(mu) = 1;  // one for Claim itself
  absl::Status status ABSL_GUARDED_BY(mu);
  ReferenceTable::Waiting then;

  void Done(const absl::Status& outcome) {
    absl::Status result;
    {
      absl::MutexLock lock(&mu);
      status.Update(outcome);
      if (--left != 0) return;
      result = status;
    }
    then(result);
  }
};

template <typename Request>
ForkId ForkOf(const Request& request) {
  return {request.parent_rank(), request.parent_incarnation(), request.fork()};
}

}  // namespace

ReferenceState::~ReferenceState() {
  if (const std::shared_ptr<Core> owner_core = core.lock()) {
    owner_core->OnReferenceDropped(*this);
  }
}

void Core::OnReferenceDropped(const ReferenceState& state) {
  if (state.local()) {
    references_.EraseOwned(state.id);
    return;
  }
  references_.EraseHandle(state.id);
  v1::ReleaseRequest release;
  ToWire(state.id, *release.mutable_object());
  release.set_fork(state.fork.number);
  release.set_parent_rank(state.fork.parent_rank);
  release.set_parent_incarnation(state.fork.parent_incarnation);
  absl::MutexLock lock(&keeper_mu_);
  if (!keeper_stop_) releases_.emplace_back(state.owner, std::move(release));
}

void Core::Discard(std::vector<ReferencePtr> dropped) {
  std::erase(dropped, nullptr);
  if (dropped.empty()) return;
  // Only objects that live here have destructors of users.
  bool local = false;
  for (const ReferencePtr& state : dropped) {
    local = local || (state->local() && state.use_count() == 1);
  }
  if (!local) return;
  Deferral::Run([dropped = std::move(dropped)]() mutable { dropped.clear(); });
}

void Core::Claim(const Peer& from, const std::shared_ptr<WireMessage>& message,
                 ReferenceTable::Waiting then) {
  auto outstanding = std::make_shared<Outstanding>();
  outstanding->then = std::move(then);
  absl::Status failed;
  for (const v1::Reference& reference : message->header->references()) {
    const auto owner =
        peers_.Get(transport::PeerId{reference.object().owner_rank(),
                                     reference.object().owner_incarnation()});
    const bool alive = owner != nullptr && !owner->lost && !owner->left;
    auto claimed = references_.Claim(
        reference, from, alive ? &owner->peer : nullptr, weak_from_this());
    if (!claimed.ok()) {
      failed.Update(claimed.status());
      continue;
    }
    message->references.push_back(claimed->state);
    v1::RpcHeader header;
    if (claimed->release != nullptr) {
      *header.mutable_release() = *claimed->release;
      SendControl(claimed->state->owner, header);
    }
    {
      absl::MutexLock lock(&outstanding->mu);
      ++outstanding->left;
    }
    auto settled = references_.AwaitFork(
        *claimed->state, [outstanding](const absl::Status& status) {
          outstanding->Done(status);
        });
    if (settled) settled(absl::OkStatus());
    if (claimed->ask != nullptr) {
      *header.mutable_fork() = *claimed->ask;
      SendControl(claimed->state->owner, header);
      // Its loss may have been handled before this fork was waited for.
      SettleIfGone(claimed->state->owner);
    }
  }
  outstanding->Done(failed);
}

void Core::SettleIfGone(const Peer& owner) {
  const auto status = peers_.Get(owner.rank);
  if (status != nullptr && status->peer == owner && !status->lost &&
      !status->left) {
    return;
  }
  const absl::Status gone = absl::UnavailableError(
      fmt::format("the owner, {}, was lost: {}", Describe(owner),
                  status != nullptr && status->lost ? status->lost_reason
                                                    : "it has ended"));
  for (auto& waiting : references_.SettleForksOf(owner)) waiting(gone);
}

void Core::OnFork(const Peer& from, const v1::ForkRequest& request) {
  v1::RpcHeader header;
  v1::ForkReply& reply = *header.mutable_fork_reply();
  reply.set_request_id(request.request_id());
  if (!references_.AddFork(request.object(), ForkOf(request), from)) {
    reply.mutable_error()->set_kind(KindOf(ErrorCode::kReferenceLost));
    reply.mutable_error()->set_message(fmt::format(
        "object {} is gone: whoever handed it on (rank {}) was lost or "
        "released it before {} confirmed it",
        request.object().object(), request.parent_rank(), Describe(from)));
  }
  SendControl(from, header);
}

void Core::OnForkReply(const v1::ForkReply& reply) {
  const absl::Status outcome =
      reply.has_error() ? absl::NotFoundError(reply.error().message())
                        : absl::OkStatus();
  for (auto& waiting : references_.SettleFork(reply.request_id())) {
    waiting(outcome);
  }
}

void Core::OnRelease(const v1::ReleaseRequest& request) {
  Discard({references_.DropFork(request.object(), ForkOf(request))});
}

void Core::WriteReferences(WireMessage& message, const Peer& to) {
  for (const ReferencePtr& state : message.references) {
    references_.Write(*state, to, *message.header->add_references());
  }
}

void Core::UnwriteReferences(const WireMessage& message) {
  for (const v1::Reference& written : message.header->references()) {
    Discard({references_.Unwrite(written)});
  }
}

}  // namespace disttrain::rpc::internal
