// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "disttrain/v1/progress.pb.h"
#include "disttrain/v1/rendezvous.pb.h"

// How ranks and failures are named in every message of the control plane, and
// in the metadata of its errors.
// Pure; thread-safe.
namespace disttrain {

// Trailing metadata of every error that the service itself gave, so that a
// client can tell it from one of the transport; and, once a failure was
// broadcast, that failure.
inline constexpr char kAnswerMetadata[] = "disttrain-answer";
inline constexpr char kFailureMetadata[] = "disttrain-failure-bin";

// A cause or reason is cut to so many bytes: it travels in gRPC metadata.
inline constexpr size_t kMaxLineBytes = 1024;

// One line of valid UTF-8, at most `max_bytes`: control characters become
// spaces, broken UTF-8 becomes '?', the rest is cut at a character's border.
std::string OneLine(std::string_view text, size_t max_bytes = kMaxLineBytes);

// "rank 2 (observer 1, pod cartpole-observer-1)"; only what is known.
std::string Describe(const v1::Member& member);

// "rank 2 (observer, pod cartpole-observer-1) failed: connection lost".
std::string Describe(const v1::Failure& failure);

// "rank 1 is missing", "ranks 1 (observer 0), 2 are missing": one name a rank,
// at most 32 of them.
std::string AreMissing(const std::vector<std::string>& names);

}  // namespace disttrain
