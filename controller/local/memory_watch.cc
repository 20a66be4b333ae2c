// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "controller/local/memory_api.h"
#include "controller/local/memory_objects.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

// How often a waiting watch asks whether it shall stop.
constexpr absl::Duration kStopPoll = absl::Milliseconds(20);
// Silence after which a watcher gets a bookmark.
constexpr absl::Duration kBookmarkInterval = absl::Seconds(60);

WatchEvent Bookmark(int64_t version) {
  return {WatchEventType::kBookmark,
          {{"metadata", {{"resourceVersion", std::to_string(version)}}}}};
}

}  // namespace

absl::Status MemoryApi::Watch(
    Resource resource, const std::string& name_space,
    const std::string& label_selector, const std::string& resource_version,
    const std::function<void(const WatchEvent&)>& on_event,
    const std::function<bool()>& stop) {
  const auto selector = memory::ParseSelector(label_selector);
  if (!selector.ok()) return selector.status();
  int64_t seen = 0;
  const char* end = resource_version.data() + resource_version.size();
  const auto parsed = std::from_chars(resource_version.data(), end, seen);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return absl::InvalidArgumentError(fmt::format(
        "resourceVersion '{}' is not one of this server", resource_version));
  }
  absl::Time heard = clock_.Now();
  mu_.Lock();
  const int64_t generation = watch_generation_;
  mu_.Unlock();
  while (!stop()) {
    std::vector<WatchEvent> events;
    {
      const absl::MutexLock lock(&mu_);
      if (watch_generation_ != generation) return absl::OkStatus();
      if (seen < compacted_) {
        return absl::OutOfRangeError(
            fmt::format("too old resource version: {} ({})", seen, compacted_));
      }
      const auto first = std::upper_bound(
          history_.begin(), history_.end(), seen,
          [](int64_t version, const Change& c) { return version < c.version; });
      for (auto it = first; it != history_.end(); ++it) {
        if (it->resource == resource &&
            memory::Matches(it->object, name_space, *selector)) {
          events.push_back({it->type, it->object});
        }
      }
      if (events.empty() && clock_.Now() - heard >= kBookmarkInterval) {
        events.push_back(Bookmark(version_));
      }
      seen = version_;
      if (events.empty()) changed_.WaitWithTimeout(&mu_, kStopPoll);
    }
    if (!events.empty()) heard = clock_.Now();
    for (const WatchEvent& event : events) on_event(event);
  }
  return absl::CancelledError("the watch was stopped");
}

void MemoryApi::CloseWatches() {
  const absl::MutexLock lock(&mu_);
  ++watch_generation_;
  changed_.SignalAll();
}

void MemoryApi::Compact() {
  const absl::MutexLock lock(&mu_);
  history_.clear();
  // A version that nobody has seen, so that every earlier watch is too old.
  compacted_ = ++version_;
  changed_.SignalAll();
}

}  // namespace disttrain
