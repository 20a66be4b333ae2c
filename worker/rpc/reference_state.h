// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "worker/rpc/object_id.h"
#include "worker/rpc/peer.h"

namespace disttrain::rpc::internal {

class Core;
struct ClassEntry;

// This process's hold on one object; all RRefs to it share one. When the last
// one goes, the owner is told (by the agent's own thread: the destructor
// neither blocks nor sends).
//
// Threads: constant after it was made.
struct ReferenceState {
  ReferenceState() = default;
  ~ReferenceState();
  ReferenceState(const ReferenceState&) = delete;
  ReferenceState& operator=(const ReferenceState&) = delete;

  bool local() const { return value != nullptr; }

  ObjectId id;
  Peer owner;
  std::string class_name;
  ForkId fork;  // unused if local
  // The object and its class, if it lives here.
  std::shared_ptr<void> value;
  const ClassEntry* entry = nullptr;
  std::weak_ptr<Core> core;
};

}  // namespace disttrain::rpc::internal
