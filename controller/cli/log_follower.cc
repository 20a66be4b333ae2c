// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/log_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace disttrain {
namespace {

constexpr size_t kMaxLine = 64 << 10;
constexpr size_t kReadsPerPoll = 4;  // of kMaxLine

}  // namespace

void LogFollower::Add(const StartedPod& pod) {
  files_.push_back({pod, UniqueFd(), ""});
}

bool LogFollower::Poll(const OnLine& on_line) {
  bool more = false;
  for (File& file : files_) more = PollFile(file, on_line) || more;
  return more;
}

void LogFollower::Finish(const OnLine& on_line) {
  while (Poll(on_line)) {
  }
  for (File& file : files_) {
    if (!file.partial.empty()) on_line(file.pod, file.partial);
    file.partial.clear();
  }
}

bool LogFollower::PollFile(File& file, const OnLine& on_line) {
  if (!file.fd.ok()) {
    file.fd = UniqueFd(open(file.pod.log_path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.fd.ok()) return false;
  }
  std::string bytes(kMaxLine, '\0');
  for (size_t i = 0; i < kReadsPerPoll; ++i) {
    const ssize_t n = read(file.fd.get(), bytes.data(), bytes.size());
    if (n <= 0) return false;
    file.partial.append(bytes, 0, static_cast<size_t>(n));
    Cut(file, on_line);
  }
  return true;
}

void LogFollower::Cut(File& file, const OnLine& on_line) {
  const std::string_view text = file.partial;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t newline = text.find('\n', begin);
    if (newline == std::string_view::npos && text.size() - begin < kMaxLine) {
      break;
    }
    const bool whole =
        newline != std::string_view::npos && newline - begin <= kMaxLine;
    const size_t size = whole ? newline - begin : kMaxLine;
    on_line(file.pod, text.substr(begin, size));
    begin += size + (whole ? 1 : 0);
  }
  file.partial.erase(0, begin);
}

}  // namespace disttrain
