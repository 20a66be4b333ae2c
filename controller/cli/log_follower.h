// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/local/run_directory.h"
#include "controller/local/unique_fd.h"

namespace disttrain {

// Reads log files while ranks append to them: every line once, in the order of
// each file. Memory is bounded however fast they grow: 64 KiB a file.
//
// Threads: not thread-safe.
class LogFollower {
 public:
  // A line without its newline. A line over 64 KiB comes in pieces.
  using OnLine = std::function<void(const StartedPod&, std::string_view)>;

  // From its first byte. The file need not exist yet.
  void Add(const StartedPod& pod);

  // Reads up to 256 KiB of each file. True if there may be more right now.
  bool Poll(const OnLine& on_line);

  // Reads all that is left, also last lines without a newline.
  void Finish(const OnLine& on_line);

 private:
  struct File {
    StartedPod pod;
    UniqueFd fd;
    std::string partial;  // the beginning of a line
  };

  static bool PollFile(File& file, const OnLine& on_line);
  static void Cut(File& file, const OnLine& on_line);

  std::vector<File> files_;
};

}  // namespace disttrain
