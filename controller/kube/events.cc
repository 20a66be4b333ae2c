// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/events.h"

#include <optional>

#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr absl::Duration kRewriteInterval = absl::Minutes(10);
// Kubernetes' limit of an event's message.
constexpr size_t kMaxMessage = 1024;
constexpr size_t kMaxSeries = 4096;

// FNV-1a: the same name for the same event after a restart of the controller.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return hash;
}

std::string Timestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string Shortened(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  size_t end = kMaxMessage;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  text.resize(end);
  return text;
}

}  // namespace

absl::Status EventRecorder::Record(const Json& object, const EventText& text) {
  const Json& metadata = object.at("metadata");
  const std::string name_space = metadata.value("namespace", "default");
  const std::string name = metadata.value("name", "");
  const std::string uid = metadata.value("uid", "");
  const std::string message = Shortened(text.message);
  const std::string key = fmt::format(
      "{}.{:016x}", name, Hash(uid + '\n' + text.reason + '\n' + message));
  Series series;
  {
    const absl::MutexLock lock(&mu_);
    if (series_.size() >= kMaxSeries) series_.clear();
    Series& known = series_[name_space + "/" + key];
    const absl::Time now = clock_.Now();
    if (known.count++ == 0) known.first = now;
    if (now - known.written < kRewriteInterval) return absl::OkStatus();
    known.written = now;
    series = known;
  }
  const Json event = {{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", key}, {"namespace", name_space}}},
                      {"involvedObject",
                       {{"apiVersion", object.value("apiVersion", "")},
                        {"kind", object.value("kind", "")},
                        {"namespace", name_space},
                        {"name", name},
                        {"uid", uid}}},
                      {"type", text.warning ? "Warning" : "Normal"},
                      {"reason", text.reason},
                      {"message", message},
                      {"count", series.count},
                      {"firstTimestamp", Timestamp(series.first)},
                      {"lastTimestamp", Timestamp(series.written)},
                      {"source", {{"component", "disttrain-controller"}}}};
  return api_.Apply(Resource::kEvents, event).status();
}

}  // namespace disttrain
