// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

namespace disttrain::rpc::internal {

// Identity of one object across the job: who owns it, in which life, and its
// number there.
struct ObjectId {
  int owner_rank = 0;
  int owner_incarnation = 0;
  uint64_t object = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): a bug of clang-tidy 14
  auto operator<=>(const ObjectId&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const ObjectId& id) {
    return H::combine(std::move(state), id.owner_rank, id.owner_incarnation,
                      id.object);
  }
};

// One process's hold on one object: the rank that made it, and its number
// there.
struct ForkId {
  int parent_rank = 0;
  int parent_incarnation = 0;
  uint64_t number = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): a bug of clang-tidy 14
  auto operator<=>(const ForkId&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const ForkId& id) {
    return H::combine(std::move(state), id.parent_rank, id.parent_incarnation,
                      id.number);
  }
};

}  // namespace disttrain::rpc::internal
