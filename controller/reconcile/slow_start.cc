// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/slow_start.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace disttrain {
namespace {

constexpr size_t kMaxBatch = 64;
constexpr size_t kMaxThreads = 8;

absl::Status RunBatch(size_t begin, size_t count,
                      const std::function<absl::Status(size_t)>& run) {
  std::vector<absl::Status> results(count);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) results[i] = run(begin + i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(count, kMaxThreads); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) {
    if (!result.ok()) return result;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SlowStart(size_t count,
                       const std::function<absl::Status(size_t)>& run) {
  size_t batch = 1;
  for (size_t done = 0; done < count; batch = std::min(batch * 2, kMaxBatch)) {
    const size_t size = std::min(batch, count - done);
    absl::Status status = RunBatch(done, size, run);
    if (!status.ok()) return status;
    done += size;
  }
  return absl::OkStatus();
}

}  // namespace disttrain
