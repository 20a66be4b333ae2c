// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/api/job.h"

namespace disttrain {

inline constexpr size_t kMaxManifestBytes = size_t{1} << 20;
// What a manifest may weigh once its aliases are expanded: 64 bytes a node and
// the length of its text.
inline constexpr size_t kMaxExpandedBytes = size_t{16} << 20;
inline constexpr size_t kMaxManifestDepth = 64;

// A manifest and where its fields stand.
struct Manifest {
  Json json;
  // Lines, from 1, of every field by path ("spec.roles[1].replicas").
  std::map<std::string, int> lines;

  // The line of the field, or of the nearest one around it; 0: unknown.
  int LineOf(std::string path) const;
};

// Reads one YAML (or JSON) document. Scalars follow the core schema of YAML
// 1.2, see PlainScalar; a quoted scalar is a string.
//
// Refused, with line and column: text that is empty, too large, or no UTF-8;
// syntax errors; more than one document; duplicate keys; tags; merge keys;
// keys that are no scalars; nesting deeper than kMaxManifestDepth; aliases
// that contain themselves or, expanded, weigh more than kMaxExpandedBytes,
// which is found out before they are expanded. Errors: INVALID_ARGUMENT.
absl::StatusOr<Manifest> ParseManifest(std::string_view text);

// The JSON of ParseManifest alone.
absl::StatusOr<Json> ManifestFromYaml(std::string_view text);

}  // namespace disttrain
