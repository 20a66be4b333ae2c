// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "worker/transport/reactor.h"
#include "worker/transport/socket.h"

namespace disttrain::transport {

// Takes connections that wait on a listener.
class Acceptor final : public Channel {
 public:
  // `on_accept` gets each connection; `on_error` hears of those not taken.
  Acceptor(Listener listener, std::function<void(UniqueFd)> on_accept,
           std::function<void(const absl::Status&)> on_error);

  int fd() const override { return listener_.fd(); }
  const Address& address() const { return listener_.address(); }
  Turn OnReady(uint32_t events) override;

 private:
  // Out of descriptors: takes and closes one connection, which would otherwise
  // stay and keep the listener readable for ever.
  void TurnAway();

  Listener listener_;
  const std::function<void(UniqueFd)> on_accept_;
  const std::function<void(const absl::Status&)> on_error_;
  UniqueFd reserve_;  // given up for that
};

}  // namespace disttrain::transport
