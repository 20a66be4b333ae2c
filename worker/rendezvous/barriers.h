// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace disttrain {

// Barriers by name: who has entered, who is missing, when it is too late.
//
// A caller is known by its rank and by the ticket under which it waits; every
// method gives back the tickets that are to be answered now, and with what. A
// name can be used again as soon as its barrier has ended.
// Threads: thread-compatible. Pure: tells no time, names ranks by `describe`.
class Barriers {
 public:
  using Answers = std::vector<std::pair<uint64_t, absl::Status>>;
  // "1 (observer 0)" for a rank.
  using DescribeRank = std::function<std::string(int)>;

  struct Entry {
    std::string name;
    // All ranks of the barrier; `rank` is one of them.
    std::set<int> ranks;
    // `ranks` are those that there are now: replaceable ones may go, and come
    // back, while the others wait.
    bool everyone = false;
    int rank = 0;
    uint64_t ticket = 0;
    // The barrier ends for all at the earliest deadline of those within.
    absl::Time deadline;
  };

  explicit Barriers(DescribeRank describe) : describe_(std::move(describe)) {}

  // INVALID_ARGUMENT: the name is longer than 256 bytes, the rank is not in the
  // set, or others entered with another set. RESOURCE_EXHAUSTED: more than
  // 1024 barriers at once. A rank that enters again (its first call was lost)
  // takes its own place; the first ticket ends with ABORTED.
  Answers Enter(const Entry& entry);

  // The call under `ticket` was given up by its caller.
  void Abandon(uint64_t ticket);

  // `rank` will not come any more: ends every barrier of which it is a part
  // with UNAVAILABLE, and the name of the rank. But nobody waits for a
  // replaceable rank in a barrier for everyone.
  Answers RankGone(int rank, bool replaceable);

  // A replaceable rank is back: barriers for everyone wait for it again.
  void RankBack(int rank);

  // Ends what is too late with DEADLINE_EXCEEDED, and the names of the missing.
  Answers Expire(absl::Time now);

  // When Expire has something to do; InfiniteFuture if nobody waits.
  absl::Time NextDeadline() const;

  // Forgets all, since everybody has been answered.
  void Clear() { barriers_.clear(); }

 private:
  struct Barrier {
    std::set<int> ranks;
    bool everyone = false;
    std::map<int, uint64_t> entered;  // rank → ticket
    absl::Time deadline = absl::InfiniteFuture();
  };

  // Answers and forgets a barrier that all have entered.
  void Complete(const std::string& name, Answers& answers);
  std::string Missing(const std::string& name, const Barrier& barrier) const;

  DescribeRank describe_;
  std::map<std::string, Barrier> barriers_;
};

}  // namespace disttrain
