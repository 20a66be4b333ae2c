// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/transport/endpoint.h"
#include "worker/transport/frame.h"

namespace disttrain::transport {

// The first frame each way: who speaks, and whom it means to reach.
//
//   HELLO = version:u32 attempt:u32 from.rank:u32 from.incarnation:u32
//           to.rank:u32 to.incarnation:u32 job_uid
//
// The first three fields stay where they are in every version.
struct Hello {
  uint32_t version = kProtocolVersion;
  int attempt = 0;
  PeerId from;
  PeerId to;
  std::string job_uid;
  bool operator==(const Hello&) const = default;
};

// Why a connection was not taken, in words that name both sides' values.
struct Refusal {
  enum class Kind : uint8_t {
    kFinal = 1,  // dialling again would get the same answer
    kRetry = 2,  // may change: the other one dials too, or does not know us yet
  };
  Kind kind = Kind::kFinal;
  std::string text;
  bool operator==(const Refusal&) const = default;
};

// How things stand with a peer.
enum class Link {
  kNone,        // nobody has dialled
  kConnecting,  // we dial; no HELLO of ours has left
  kGreeting,  // our HELLO is on its way, so the peer may already have taken it
  kConnected,
  kLeft,  // it said goodbye
  kLost,
};

// What an acceptor knows about the rank that a HELLO claims to come from.
struct KnownPeer {
  int incarnation = 0;
  Link link = Link::kNone;
};

std::string EncodeHello(const Hello& hello);
// Errors: DATA_LOSS: too short. Of another version only the version, attempt
// and rank are read.
absl::StatusOr<Hello> DecodeHello(absl::string_view payload);

std::string EncodeRefusal(const Refusal& refusal);
absl::StatusOr<Refusal> DecodeRefusal(absl::string_view payload);

// Whether `theirs`, received by the process that `ours` describes (ours.to is
// not looked at), opens a connection; nothing: it does. `known`: what is known
// of theirs.from.rank; nothing if that is no peer. Refused are strangers, other
// attempts, zombies, duplicates, and of two that dial each other the higher
// rank.
std::optional<Refusal> CheckHello(const Hello& theirs, const Hello& ours,
                                  const std::optional<KnownPeer>& known);

// Whether `theirs`, an acceptor's answer, is from whom the dialler meant.
std::optional<Refusal> CheckAnswer(const Hello& theirs, const Hello& ours);

// "rank 3" or, from the second life on, "rank 3 (incarnation 1)".
std::string Name(const PeerId& id);

}  // namespace disttrain::transport
