// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/manifest.h"

#include <sstream>
#include <utility>
#include <vector>

#include "controller/api/field_error.h"
#include "controller/cli/yaml_scalar.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "proto/runtime/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace disttrain {
namespace {

constexpr size_t kNodeBytes = 64;

// Builds the JSON of a stream of documents. A mistake is thrown, as yaml-cpp
// throws its own; ParseManifest turns both into a Status.
class JsonBuilder : public YAML::EventHandler {
 public:
  // The non-empty document, if there was one.
  bool has_document() const { return has_document_; }
  Manifest TakeManifest() { return std::move(manifest_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    document_mark_ = mark;
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Begin(mark, kNodeBytes);
    Finish(Json(), anchor, kNodeBytes);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      Fail(mark, "an alias to a node that contains it");
    }
    if (used_bytes_ + found->second.bytes > kMaxExpandedBytes) {
      Fail(mark, fmt::format("with this alias expanded the document is larger "
                             "than {} MiB",
                             kMaxExpandedBytes >> 20));
    }
    if (ExpectsKey()) {
      Fail(mark, "an alias cannot be a key");
    }
    Begin(mark, found->second.bytes);
    Finish(found->second.json, 0, found->second.bytes);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    RefuseTag(mark, tag, /*is_scalar=*/true);
    if (ExpectsKey()) return TakeKey(mark, value, tag == "?");
    const size_t bytes = kNodeBytes + value.size();
    Begin(mark, bytes);
    if (tag != "?") return Finish(Json(value), anchor, bytes);
    absl::StatusOr<Json> scalar = PlainScalar(value);
    if (!scalar.ok()) Fail(mark, Message(scalar.status()));
    Finish(std::move(*scalar), anchor, bytes);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override { Close(); }

 private:
  // A list or an object whose end has not come yet.
  struct Frame {
    Json json;
    std::string path;
    YAML::anchor_t anchor = 0;
    size_t bytes = 0;  // of all that is in it
    std::string key;   // objects: the key whose value comes next
    bool has_key = false;
    int key_line = 0;
  };

  struct Anchor {
    Json json;
    size_t bytes = 0;
  };

  [[noreturn]] static void Fail(const YAML::Mark& mark,
                                const std::string& message) {
    throw YAML::ParserException(mark, message);
  }

  static void RefuseTag(const YAML::Mark& mark, const std::string& tag,
                        bool is_scalar) {
    // "?" and "!" are what yaml-cpp calls plain and quoted scalars.
    if (tag.empty() || tag == "?" || (is_scalar && tag == "!")) return;
    Fail(mark, fmt::format("tags are not supported: {}", tag));
  }

  bool ExpectsKey() const {
    return !frames_.empty() && frames_.back().json.is_object() &&
           !frames_.back().has_key;
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key, bool plain) {
    Frame& frame = frames_.back();
    if (plain && key == "<<") {
      Fail(mark, "merge keys (<<) are not supported");
    }
    if (frame.json.contains(key)) {
      const int first = manifest_.lines[Join(frame.path, key)];
      Fail(mark, fmt::format("{} is given twice, first in line {}",
                             Join(frame.path, key), first));
    }
    frame.key = key;
    frame.has_key = true;
    frame.key_line = mark.line + 1;
  }

  // A value is about to come: checks that it may, and notes its line.
  void Begin(const YAML::Mark& mark, size_t bytes) {
    used_bytes_ += bytes;
    if (used_bytes_ > kMaxExpandedBytes) {
      Fail(mark, fmt::format("the document has too many nodes (limit: {} MiB)",
                             kMaxExpandedBytes >> 20));
    }
    if (ExpectsKey()) Fail(mark, "a key must be a scalar");
    manifest_.lines[NextPath()] = NextLine(mark);
  }

  std::string NextPath() const {
    if (frames_.empty()) return "";
    const Frame& frame = frames_.back();
    return frame.json.is_array() ? Join(frame.path, frame.json.size())
                                 : Join(frame.path, frame.key);
  }

  int NextLine(const YAML::Mark& mark) const {
    const bool in_object = !frames_.empty() && frames_.back().has_key;
    return in_object ? frames_.back().key_line : mark.line + 1;
  }

  void Open(const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor, Json empty) {
    RefuseTag(mark, tag, /*is_scalar=*/false);
    if (frames_.size() >= kMaxManifestDepth) {
      Fail(mark,
           fmt::format("nested deeper than {} levels", kMaxManifestDepth));
    }
    Begin(mark, kNodeBytes);
    std::string path = NextPath();
    frames_.push_back(
        {std::move(empty), std::move(path), anchor, kNodeBytes, "", false, 0});
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Finish(std::move(frame.json), frame.anchor, frame.bytes);
  }

  // A value is complete: remembers it for aliases and hands it to what it is
  // in.
  void Finish(Json value, YAML::anchor_t anchor, size_t bytes) {
    if (anchor != 0) {
      used_bytes_ += bytes;  // the copy
      if (used_bytes_ > kMaxExpandedBytes) {
        Fail(document_mark_, "the anchored nodes are too large");
      }
      anchors_[anchor] = {value, bytes};
    }
    if (frames_.empty()) return FinishDocument(std::move(value));
    Frame& frame = frames_.back();
    frame.bytes += bytes;
    if (frame.json.is_array()) {
      frame.json.push_back(std::move(value));
    } else {
      frame.bytes += frame.key.size();
      frame.json[frame.key] = std::move(value);
      frame.has_key = false;
    }
  }

  void FinishDocument(Json value) {
    if (value.is_null()) return;  // "---" with nothing after it
    if (has_document_) {
      Fail(document_mark_,
           "a second document begins here; put one job in each file");
    }
    has_document_ = true;
    manifest_.json = std::move(value);
  }

  Manifest manifest_;
  bool has_document_ = false;
  YAML::Mark document_mark_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Anchor> anchors_;
  size_t used_bytes_ = 0;
};

absl::Status CheckText(std::string_view text) {
  if (text.size() > kMaxManifestBytes) {
    return absl::InvalidArgumentError(
        fmt::format("the manifest has {} bytes, must have at most {}",
                    text.size(), kMaxManifestBytes));
  }
  if (text.find('\0') != std::string_view::npos || ValidUtf8(text) != text) {
    return absl::InvalidArgumentError("the manifest is not UTF-8 text");
  }
  return absl::OkStatus();
}

}  // namespace

int Manifest::LineOf(std::string path) const {
  while (true) {
    const auto found = lines.find(path);
    if (found != lines.end()) return found->second;
    if (path.empty()) return 0;
    const size_t end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text) {
  RETURN_IF_ERROR(CheckText(text));
  JsonBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("line {}, column {}: {}", error.mark.line + 1,
                    error.mark.column + 1, error.msg));
  }
  if (!builder.has_document()) {
    return absl::InvalidArgumentError("the manifest is empty");
  }
  return builder.TakeManifest();
}

absl::StatusOr<Json> ManifestFromYaml(std::string_view text) {
  ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(text));
  return std::move(manifest.json);
}

}  // namespace disttrain
