// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/hello.h"

#include <utility>

#include "fmt/format.h"
#include "worker/transport/wire.h"

namespace disttrain::transport {
namespace {

constexpr size_t kStableBytes = 12;
constexpr size_t kFixedBytes = 24;

Refusal Final(std::string text) {
  return {Refusal::Kind::kFinal, std::move(text)};
}

Refusal Retry(std::string text) {
  return {Refusal::Kind::kRetry, std::move(text)};
}

int IntAt(absl::string_view bytes, size_t offset) {
  return static_cast<int>(LittleEndian<uint32_t>(bytes, offset));
}

// Version, job and attempt: the same for both directions.
std::optional<Refusal> CheckWorld(const Hello& theirs, const Hello& ours) {
  if (theirs.version != ours.version) {
    return Final(fmt::format("{} speaks protocol version {}, {} speaks {}",
                             Name(theirs.from), theirs.version, Name(ours.from),
                             ours.version));
  }
  if (theirs.job_uid != ours.job_uid) {
    return Final(fmt::format("{} belongs to job '{}', {} to job '{}'",
                             Name(theirs.from), theirs.job_uid, Name(ours.from),
                             ours.job_uid));
  }
  if (theirs.attempt != ours.attempt) {
    return Final(fmt::format("{} is of attempt {}, {} of attempt {}",
                             Name(theirs.from), theirs.attempt, Name(ours.from),
                             ours.attempt));
  }
  return std::nullopt;
}

std::optional<Refusal> CheckTarget(const Hello& theirs, const Hello& ours) {
  if (theirs.to == ours.from) return std::nullopt;
  std::string text = fmt::format(
      "{} dialled rank {} incarnation {} and reached rank {} "
      "incarnation {}",
      Name(theirs.from), theirs.to.rank, theirs.to.incarnation, ours.from.rank,
      ours.from.incarnation);
  // An older life of the same rank may still hold the address for a moment.
  const bool early = theirs.to.rank == ours.from.rank &&
                     theirs.to.incarnation > ours.from.incarnation;
  return early ? Retry(std::move(text)) : Final(std::move(text));
}

std::optional<Refusal> CheckIncarnation(const Hello& theirs,
                                        const KnownPeer& known) {
  const int incarnation = theirs.from.incarnation;
  std::string text =
      fmt::format("rank {} says hello with incarnation {}, known is {}",
                  theirs.from.rank, incarnation, known.incarnation);
  if (incarnation < known.incarnation) return Final(std::move(text));
  if (incarnation > known.incarnation) return Retry(std::move(text));
  return std::nullopt;
}

std::optional<Refusal> CheckLink(const Hello& theirs, const Hello& ours,
                                 Link link) {
  const std::string who = fmt::format(
      "rank {} incarnation {}", theirs.from.rank, theirs.from.incarnation);
  switch (link) {
    case Link::kNone:
    case Link::kConnecting:
      return std::nullopt;
    case Link::kGreeting:
      if (theirs.from.rank < ours.from.rank) return std::nullopt;
      return Retry(fmt::format(
          "{} and {} dial each other: the lower rank's connection stays", who,
          Name(ours.from)));
    case Link::kConnected:
      return Retry(fmt::format("{} has a connection to {} already", who,
                               Name(ours.from)));
    case Link::kLeft:
      return Final(
          fmt::format("{} has said goodbye to {}", who, Name(ours.from)));
    case Link::kLost:
      return Final(
          fmt::format("{} was given up by {} as lost", who, Name(ours.from)));
  }
  return std::nullopt;
}

}  // namespace

std::string Name(const PeerId& id) {
  return id.incarnation == 0
             ? fmt::format("rank {}", id.rank)
             : fmt::format("rank {} (incarnation {})", id.rank, id.incarnation);
}

std::string EncodeHello(const Hello& hello) {
  std::string out;
  AppendLittleEndian(out, hello.version);
  for (const int value :
       {hello.attempt, hello.from.rank, hello.from.incarnation, hello.to.rank,
        hello.to.incarnation}) {
    AppendLittleEndian(out, static_cast<uint32_t>(value));
  }
  return out + hello.job_uid;
}

absl::StatusOr<Hello> DecodeHello(absl::string_view payload) {
  if (payload.size() < kStableBytes) {
    return absl::DataLossError(
        fmt::format("hello has {} bytes, expected at least {}", payload.size(),
                    kStableBytes));
  }
  Hello hello;
  hello.version = LittleEndian<uint32_t>(payload, 0);
  hello.attempt = IntAt(payload, 4);
  hello.from.rank = IntAt(payload, 8);
  if (hello.version != kProtocolVersion) return hello;
  if (payload.size() < kFixedBytes) {
    return absl::DataLossError(
        fmt::format("hello has {} bytes, expected at least {}", payload.size(),
                    kFixedBytes));
  }
  hello.from.incarnation = IntAt(payload, 12);
  hello.to.rank = IntAt(payload, 16);
  hello.to.incarnation = IntAt(payload, 20);
  payload.remove_prefix(kFixedBytes);
  hello.job_uid.assign(payload.data(), payload.size());
  return hello;
}

std::string EncodeRefusal(const Refusal& refusal) {
  std::string out;
  AppendLittleEndian(out, static_cast<uint8_t>(refusal.kind));
  return out + refusal.text.substr(0, kMaxGreetingBytes - 1);
}

absl::StatusOr<Refusal> DecodeRefusal(absl::string_view payload) {
  if (payload.empty()) return absl::DataLossError("refusal is empty");
  Refusal refusal;
  refusal.kind = LittleEndian<uint8_t>(payload, 0) ==
                         static_cast<uint8_t>(Refusal::Kind::kRetry)
                     ? Refusal::Kind::kRetry
                     : Refusal::Kind::kFinal;
  payload.remove_prefix(1);
  refusal.text.assign(payload.data(), payload.size());
  return refusal;
}

std::optional<Refusal> CheckHello(const Hello& theirs, const Hello& ours,
                                  const std::optional<KnownPeer>& known) {
  if (auto refusal = CheckWorld(theirs, ours)) return refusal;
  if (auto refusal = CheckTarget(theirs, ours)) return refusal;
  if (!known) {
    return Final(fmt::format("rank {} is no peer of {}", theirs.from.rank,
                             Name(ours.from)));
  }
  if (auto refusal = CheckIncarnation(theirs, *known)) return refusal;
  return CheckLink(theirs, ours, known->link);
}

std::optional<Refusal> CheckAnswer(const Hello& theirs, const Hello& ours) {
  if (auto refusal = CheckWorld(theirs, ours)) return refusal;
  if (theirs.from == ours.to) return std::nullopt;
  if (theirs.from == ours.from) {
    // TCP connects a socket to itself when the kernel picks the dialled port.
    return Retry(fmt::format("{} reached itself", Name(ours.from)));
  }
  return Final(fmt::format(
      "dialled rank {} incarnation {}, rank {} incarnation {} answered",
      ours.to.rank, ours.to.incarnation, theirs.from.rank,
      theirs.from.incarnation));
}

}  // namespace disttrain::transport
