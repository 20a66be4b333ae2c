// SPDX-License-Identifier: Apache-2.0
//
// The half of Roster that decides who may take part.
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/roster.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

constexpr size_t kMaxUidBytes = 128;
constexpr size_t kMaxRoleBytes = 64;
constexpr size_t kMaxPodBytes = 256;
constexpr size_t kMaxAddressBytes = 512;

absl::Status CheckText(const char* what, const std::string& text,
                       size_t max_bytes) {
  if (text.size() > max_bytes || OneLine(text, max_bytes) != text) {
    return absl::InvalidArgumentError(
        fmt::format("{} is '{}', must be one line of at most {} bytes", what,
                    OneLine(text, max_bytes), max_bytes));
  }
  return absl::OkStatus();
}

// What the request says about itself.
absl::Status CheckSelf(const v1::JoinRequest& request) {
  const v1::Member& self = request.self();
  if (self.rank() != request.caller().rank() ||
      self.incarnation() != request.caller().incarnation()) {
    return absl::InvalidArgumentError(fmt::format(
        "self is rank {} incarnation {}, the caller rank {} incarnation {}",
        self.rank(), self.incarnation(), request.caller().rank(),
        request.caller().incarnation()));
  }
  if (self.role_index() < 0) {
    return absl::InvalidArgumentError(
        fmt::format("role_index is {}, must be at least 0", self.role_index()));
  }
  if (self.replaceable() && self.rank() == 0) {
    return absl::InvalidArgumentError(
        "rank 0 serves the rendezvous and cannot be replaceable");
  }
  if (self.role().empty()) return absl::InvalidArgumentError("role is empty");
  RETURN_IF_ERROR(CheckText("role", self.role(), kMaxRoleBytes));
  RETURN_IF_ERROR(CheckText("pod", self.pod(), kMaxPodBytes));
  return CheckText("address", self.address(), kMaxAddressBytes);
}

}  // namespace

absl::Status Roster::CheckJob(const std::string& job_uid, int attempt) const {
  if (job_uid != options_.job_uid) {
    return absl::FailedPreconditionError(
        fmt::format("this is the rendezvous of job {}, the caller is of job {}",
                    options_.job_uid, OneLine(job_uid, kMaxUidBytes)));
  }
  if (attempt < options_.attempt) {
    return absl::AbortedError(
        fmt::format("attempt {} is over, attempt {} is running: leave", attempt,
                    options_.attempt));
  }
  if (attempt > options_.attempt) {
    return absl::UnavailableError(
        fmt::format("rank 0 of attempt {} has not started, that of attempt {} "
                    "still answers",
                    attempt, options_.attempt));
  }
  return absl::OkStatus();
}

absl::Status Roster::CheckCaller(const v1::Caller& caller) const {
  RETURN_IF_ERROR(CheckJob(caller.job_uid(), caller.attempt()));
  if (caller.rank() < 0 || caller.rank() >= options_.world_size) {
    return absl::InvalidArgumentError(fmt::format(
        "rank {} is outside [0, {})", caller.rank(), options_.world_size));
  }
  if (caller.incarnation() < 0) {
    return absl::InvalidArgumentError(fmt::format(
        "incarnation is {}, must be at least 0", caller.incarnation()));
  }
  const Rank& rank = At(caller.rank());
  if (rank.member && caller.incarnation() < rank.member->incarnation()) {
    return absl::AbortedError(fmt::format(
        "incarnation {} of {} is over, incarnation {} has its place: leave",
        caller.incarnation(), Describe(*rank.member),
        rank.member->incarnation()));
  }
  return absl::OkStatus();
}

absl::Status Roster::Check(const v1::Caller& caller) const {
  RETURN_IF_ERROR(CheckCaller(caller));
  const Rank& rank = At(caller.rank());
  if (rank.gone) {
    if (failure_) return absl::UnavailableError(Describe(*failure_));
    return absl::AbortedError(
        fmt::format("{} was lost or has left: leave", Describe(*rank.member)));
  }
  if (!rank.joined || rank.member->incarnation() != caller.incarnation()) {
    return absl::FailedPreconditionError(
        fmt::format("incarnation {} of rank {} has not joined",
                    caller.incarnation(), caller.rank()));
  }
  if (rank.process != caller.process()) {
    return absl::AlreadyExistsError(
        fmt::format("{} is another process", Describe(*rank.member)));
  }
  return absl::OkStatus();
}

absl::Status Roster::CheckOpen() const {
  if (failure_) return absl::UnavailableError(Describe(*failure_));
  if (finish_) {
    return absl::AbortedError(
        fmt::format("the program has ended: {}", finish_->reason()));
  }
  if (stop_) {
    return absl::AbortedError(
        fmt::format("all ranks were told to leave: {}", stop_->reason()));
  }
  return absl::OkStatus();
}

absl::Status Roster::CheckSuccession(const v1::JoinRequest& request) const {
  RETURN_IF_ERROR(CheckSelf(request));
  const Rank& rank = At(request.caller().rank());
  if (!rank.joined && !rank.gone) return absl::OkStatus();
  const v1::Member& before = *rank.member;
  if (request.caller().incarnation() == before.incarnation()) {
    if (rank.gone) {
      return absl::AbortedError(fmt::format(
          "{} was lost or has left: only a higher incarnation may return",
          Describe(before)));
    }
    if (rank.process == request.caller().process()) return absl::OkStatus();
    return absl::AlreadyExistsError(fmt::format(
        "{} is alive; a second process{} claims its place", Describe(before),
        request.self().pod().empty() ? ""
                                     : " (pod " + request.self().pod() + ")"));
  }
  if (complete_ && !before.replaceable()) {
    return absl::FailedPreconditionError(fmt::format(
        "incarnation {} of {} cannot return within an attempt: its role does "
        "not have restart: Rank",
        request.caller().incarnation(), Describe(before)));
  }
  return absl::OkStatus();
}

absl::Status Roster::CheckPlace(const v1::Member& self) const {
  for (const Rank& other : ranks_) {
    if (!other.member || other.member->rank() == self.rank()) continue;
    if (other.member->role() == self.role() &&
        other.member->role_index() == self.role_index()) {
      return absl::FailedPreconditionError(
          fmt::format("rank {} says it is {} {}, which rank {} is", self.rank(),
                      self.role(), self.role_index(), other.member->rank()));
    }
  }
  return absl::OkStatus();
}

}  // namespace disttrain
