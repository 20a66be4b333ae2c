// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/barriers.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxBarriers = 1024;

absl::Status CheckEntry(const Barriers::Entry& entry) {
  if (entry.name.empty() || entry.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        fmt::format("the name of the barrier has {} bytes, must be in [1, {}]",
                    entry.name.size(), kMaxNameBytes));
  }
  if (!entry.ranks.contains(entry.rank)) {
    return absl::InvalidArgumentError(
        fmt::format("rank {} entered barrier '{}', which is for ranks {}",
                    entry.rank, OneLine(entry.name), entry.ranks));
  }
  return absl::OkStatus();
}

}  // namespace

Barriers::Answers Barriers::Enter(const Entry& entry) {
  const auto refuse = [&](const absl::Status& status) {
    return Answers{{entry.ticket, status}};
  };
  if (absl::Status status = CheckEntry(entry); !status.ok()) {
    return refuse(status);
  }
  if (!barriers_.contains(entry.name) && barriers_.size() >= kMaxBarriers) {
    return refuse(absl::ResourceExhaustedError(
        fmt::format("{} barriers are open, the limit", kMaxBarriers)));
  }
  Barrier& barrier = barriers_[entry.name];
  if (barrier.entered.empty()) {
    barrier.ranks = entry.ranks;
    barrier.everyone = entry.everyone;
  }
  if (barrier.everyone && entry.everyone) barrier.ranks.insert(entry.rank);
  if (barrier.everyone != entry.everyone ||
      (!barrier.everyone && barrier.ranks != entry.ranks)) {
    return refuse(absl::InvalidArgumentError(fmt::format(
        "rank {} entered barrier '{}' for ranks {}, others for ranks {}",
        entry.rank, OneLine(entry.name), entry.ranks, barrier.ranks)));
  }
  Answers answers;
  if (const auto it = barrier.entered.find(entry.rank);
      it != barrier.entered.end()) {
    answers.emplace_back(it->second, absl::AbortedError(fmt::format(
                                         "rank {} entered barrier '{}' again",
                                         entry.rank, OneLine(entry.name))));
  }
  barrier.entered[entry.rank] = entry.ticket;
  barrier.deadline = std::min(barrier.deadline, entry.deadline);
  Complete(entry.name, answers);
  return answers;
}

void Barriers::Complete(const std::string& name, Answers& answers) {
  const auto found = barriers_.find(name);
  if (found->second.entered.size() < found->second.ranks.size()) return;
  for (const auto& [rank, ticket] : found->second.entered) {
    answers.emplace_back(ticket, absl::OkStatus());
  }
  barriers_.erase(found);
}

void Barriers::Abandon(uint64_t ticket) {
  for (auto it = barriers_.begin(); it != barriers_.end(); ++it) {
    Barrier& barrier = it->second;
    const size_t erased = std::erase_if(
        barrier.entered, [&](const auto& e) { return e.second == ticket; });
    if (erased == 0) continue;
    if (barrier.entered.empty()) barriers_.erase(it);
    return;
  }
}

Barriers::Answers Barriers::RankGone(int rank, bool replaceable) {
  Answers answers;
  for (auto it = barriers_.begin(); it != barriers_.end();) {
    const auto here = it++;  // it may go
    auto& [name, barrier] = *here;
    if (!barrier.ranks.contains(rank)) continue;
    const absl::Status status = absl::UnavailableError(fmt::format(
        "barrier '{}': rank {} has gone", OneLine(name), describe_(rank)));
    if (barrier.everyone && replaceable) {
      barrier.ranks.erase(rank);
      if (const auto entered = barrier.entered.extract(rank)) {
        answers.emplace_back(entered.mapped(), status);
      }
      Complete(name, answers);
      continue;
    }
    for (const auto& [member, ticket] : barrier.entered) {
      answers.emplace_back(ticket, status);
    }
    barriers_.erase(here);
  }
  return answers;
}

void Barriers::RankBack(int rank) {
  for (auto& [name, barrier] : barriers_) {
    if (barrier.everyone) barrier.ranks.insert(rank);
  }
}

Barriers::Answers Barriers::Expire(absl::Time now) {
  Answers answers;
  for (auto it = barriers_.begin(); it != barriers_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    const absl::Status status =
        absl::DeadlineExceededError(Missing(it->first, it->second));
    for (const auto& [member, ticket] : it->second.entered) {
      answers.emplace_back(ticket, status);
    }
    it = barriers_.erase(it);
  }
  return answers;
}

absl::Time Barriers::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, barrier] : barriers_) {
    next = std::min(next, barrier.deadline);
  }
  return next;
}

std::string Barriers::Missing(const std::string& name,
                              const Barrier& barrier) const {
  std::vector<std::string> missing;
  for (const int rank : barrier.ranks) {
    if (!barrier.entered.contains(rank)) missing.push_back(describe_(rank));
  }
  return fmt::format("barrier '{}': {}/{} ranks entered; {}", OneLine(name),
                     barrier.entered.size(), barrier.ranks.size(),
                     AreMissing(missing));
}

}  // namespace disttrain
