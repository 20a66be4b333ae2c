// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "controller/cli/progress_line.h"
#include "controller/local/run_directory.h"

namespace disttrain {

struct DisplayOptions {
  bool terminal = false;  // `out` is one that can move its cursor
  bool colour = false;
  bool progress = true;
  // Columns of the terminal now.
  std::function<int()> width = [] { return 80; };
  // Between two plain progress lines, at least.
  absl::Duration plain_interval = absl::Seconds(5);
};

// What a person sees of a run: lines, and on a terminal one progress line below
// them, redrawn in place and wiped at the end. Elsewhere progress is a plain
// line every few seconds, only if something changed.
//
// Threads: not thread-safe. Blocking: as long as the reader of `out` does.
class Display {
 public:
  Display(std::ostream& out, DisplayOptions options)
      : out_(out), options_(std::move(options)) {}

  // A line of a rank, with "[role index] " before it.
  void RankLine(const StartedPod& pod, std::string_view text);
  void Line(std::string_view text);
  void Progress(const JobProgress& progress, absl::Duration elapsed);

  // Writes what was given since the last call, in one piece. False once `out`
  // takes nothing more (its reader is gone).
  bool Flush();

  // Flushes and wipes the progress line. More may follow.
  void Wipe();

 private:
  std::ostream& out_;
  const DisplayOptions options_;
  std::string pending_;        // whole lines
  std::string progress_line_;  // wanted
  std::string shown_;          // on the terminal now; "": none
  JobProgress last_plain_;
  absl::Duration last_plain_at_ = -absl::InfiniteDuration();
};

// How `out` wants it: a terminal only if it is standard output or error of this
// process and one that TERM does not call dumb; colour unless NO_COLOR is set.
DisplayOptions DisplayOptionsFor(const std::ostream& out,
                                 const GetEnv& get_env);

}  // namespace disttrain
