// SPDX-License-Identifier: Apache-2.0
#include "controller/local/termination_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "controller/api/job.h"
#include "controller/local/unique_fd.h"

namespace disttrain {
namespace {

constexpr int kMaxFallbackLines = 80;

// Up to `limit` bytes of a regular file, from its start or its end. A rank
// chooses what lies there, so neither links nor pipes are followed.
std::string ReadPart(const std::string& path, size_t limit, bool from_end) {
  const UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd.ok() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return "";
  }
  const off_t size = info.st_size;
  off_t offset =
      from_end ? std::max<off_t>(0, size - static_cast<off_t>(limit)) : 0;
  std::string text(limit, '\0');
  size_t filled = 0;
  while (filled < limit) {
    const ssize_t n =
        pread(fd.get(), text.data() + filled, limit - filled, offset);
    if (n <= 0) break;
    filled += static_cast<size_t>(n);
    offset += n;
  }
  text.resize(filled);
  return text;
}

// Bytes that are no UTF-8 become U+FFFD: the message ends up in JSON.
std::string ValidUtf8(const std::string& text) {
  const Json json = text;
  return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string ReadTerminationMessage(const std::string& path) {
  return ValidUtf8(ReadPart(path, kMaxTerminationMessage, /*from_end=*/false));
}

std::string TailOfLog(const std::string& path) {
  std::string text = ReadPart(path, kMaxFallbackMessage, /*from_end=*/true);
  if (text.size() == kMaxFallbackMessage) {
    const size_t line_end = text.find('\n');
    if (line_end != std::string::npos) text.erase(0, line_end + 1);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.size();
  for (int lines = 0;
       lines < kMaxFallbackLines && begin != std::string::npos && begin > 0;
       ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string::npos && begin > 0) text.erase(0, begin + 1);
  return ValidUtf8(text);
}

}  // namespace disttrain
