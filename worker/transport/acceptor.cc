// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/acceptor.h"

#include <fcntl.h>

namespace disttrain::transport {
namespace {

constexpr int kAcceptsPerTurn = 16;

UniqueFd OpenReserve() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Acceptor::Acceptor(Listener listener, std::function<void(UniqueFd)> on_accept,
                   std::function<void(const absl::Status&)> on_error)
    : listener_(std::move(listener)),
      on_accept_(std::move(on_accept)),
      on_error_(std::move(on_error)),
      reserve_(OpenReserve()) {}

Channel::Turn Acceptor::OnReady(uint32_t) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    absl::StatusOr<UniqueFd> fd = listener_.Accept();
    if (fd.ok()) {
      on_accept_(*std::move(fd));
      continue;
    }
    if (absl::IsUnavailable(fd.status())) break;
    on_error_(fd.status());
    if (absl::IsResourceExhausted(fd.status())) {
      TurnAway();
      break;
    }
  }
  return {};
}

void Acceptor::TurnAway() {
  reserve_.Reset();
  listener_.Accept().IgnoreError();
  reserve_ = OpenReserve();
}

}  // namespace disttrain::transport
