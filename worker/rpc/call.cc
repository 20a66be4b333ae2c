// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/call.h"

#include <stdexcept>
#include <utility>

#include "fmt/format.h"
#include "worker/rpc/core.h"
#include "worker/rpc/error.h"

namespace disttrain::rpc::internal {

Peer PeerOf(const Core& core, int rank) {
  const auto status = core.peers().Get(rank);
  if (status == nullptr) {
    throw std::out_of_range(fmt::format("there is no rank {}", rank));
  }
  return status->peer;
}

std::optional<Peer> LivingPeer(const Core& core, int rank) {
  const auto status = core.peers().Get(rank);
  if (status == nullptr || status->lost || status->left) return std::nullopt;
  return status->peer;
}

std::shared_ptr<State<void>> NextReturn(const std::shared_ptr<Core>& core) {
  return core->NextReturn();
}

const Peer& SelfOf(const Core& core) { return core.self(); }

std::shared_ptr<ReferenceState> OwnObject(const std::shared_ptr<Core>& core,
                                          std::shared_ptr<void> value,
                                          const ClassEntry& entry) {
  return core->Own(std::move(value), entry);
}

Request::Request(std::shared_ptr<Core> core,
                 std::shared_ptr<ReferenceState> target, std::string_view label,
                 std::string_view method)
    : core_(std::move(core)),
      target_(std::move(target)),
      to_(target_->owner),
      label_(label),
      message_(std::make_shared<WireMessage>()) {
  v1::CallRequest& call = *message_->header->mutable_call();
  ToWire(target_->id, *call.mutable_target());
  call.set_class_name(target_->class_name);
  call.set_method(method.data(), method.size());
}

Request::Request(std::shared_ptr<Core> core, const Peer& to,
                 std::string_view class_name)
    : core_(std::move(core)),
      to_(to),
      label_(class_name),
      message_(std::make_shared<WireMessage>()) {
  message_->header->mutable_call()->set_class_name(class_name.data(),
                                                   class_name.size());
}

Request::~Request() = default;

Writer Request::Argument() {
  return Writer(message_->header->mutable_call()->add_arguments(),
                message_.get());
}

void Request::Unsendable(const ValueError& error) const {
  throw InvalidArgument(
      {.peer = to_,
       .method = std::string(label_),
       .elapsed = absl::ZeroDuration()},
      fmt::format("argument {}: {}", message_->header->call().arguments_size(),
                  error.what()));
}

void Request::Start(const std::shared_ptr<FutureState>& result,
                    const CallOptions& options, bool synchronous) {
  auto call = std::make_shared<OutgoingCall>();
  call->peer = to_;
  call->label = label_;
  call->state = result;
  call->kept = message_->references;
  if (target_ != nullptr) call->kept.push_back(std::move(target_));
  core_->StartCall(message_, call, options.timeout, synchronous);
}

void ThrowUnlisted(const Peer& peer, std::string_view class_name,
                   const std::string& listed) {
  throw UnknownMethod({.peer = peer,
                       .method = std::string(class_name),
                       .elapsed = absl::ZeroDuration()},
                      fmt::format("the method is not in DISTTRAIN_REMOTE({}, "
                                  "…); {}",
                                  class_name, listed));
}

void ThrowNotLocal(const ReferenceState& state) {
  throw InvalidArgument(
      {.peer = state.owner,
       .method = state.class_name,
       .elapsed = absl::ZeroDuration()},
      "the object does not live in this process: call it with Sync or Async");
}

void ThrowEmpty(std::string_view class_name) {
  throw std::logic_error(
      fmt::format("RRef<{}> is empty: it refers to no object", class_name));
}

}  // namespace disttrain::rpc::internal
