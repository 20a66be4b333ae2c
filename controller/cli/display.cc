// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <iostream>

#include "fmt/format.h"

namespace disttrain {
namespace {

// Told apart on dark and on light ground.
constexpr std::array kColours = {36, 33, 32, 35, 34, 31};

constexpr char kWipeLine[] = "\r\033[K";
// So that a line that is too wide after a resize does not wrap.
constexpr char kNoWrap[] = "\033[?7l";
constexpr char kWrap[] = "\033[?7h";

int WidthOf(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

void Display::RankLine(const StartedPod& pod, std::string_view text) {
  const std::string prefix = fmt::format("[{} {}]", pod.role, pod.role_index);
  if (options_.colour) {
    const int colour =
        kColours[static_cast<size_t>(pod.rank < 0 ? 0 : pod.rank) %
                 kColours.size()];
    Line(fmt::format("\033[{}m{}\033[0m {}", colour, prefix, text));
  } else {
    Line(fmt::format("{} {}", prefix, text));
  }
}

void Display::Line(std::string_view text) {
  pending_.append(text);
  pending_ += '\n';
}

void Display::Progress(const JobProgress& progress, absl::Duration elapsed) {
  if (!options_.progress) return;
  if (options_.terminal) {
    progress_line_ = ProgressLine(progress, elapsed, options_.width() - 1);
    return;
  }
  if (progress == last_plain_ ||
      elapsed - last_plain_at_ < options_.plain_interval) {
    return;
  }
  last_plain_ = progress;
  last_plain_at_ = elapsed;
  Line(PlainProgress(progress, elapsed));
}

bool Display::Flush() {
  if (!options_.terminal) {
    if (pending_.empty()) return out_.good();
    out_ << pending_ << std::flush;
  } else if (!pending_.empty() || progress_line_ != shown_) {
    std::string text = shown_.empty() ? "" : kWipeLine;
    text += pending_;
    if (!progress_line_.empty()) text += kNoWrap + progress_line_ + kWrap;
    out_ << text << std::flush;
    shown_ = progress_line_;
  }
  pending_.clear();
  return out_.good();
}

void Display::Wipe() {
  progress_line_.clear();
  Flush();
}

DisplayOptions DisplayOptionsFor(const std::ostream& out,
                                 const GetEnv& get_env) {
  DisplayOptions options;
  const int fd = &out == &std::cout   ? STDOUT_FILENO
                 : &out == &std::cerr ? STDERR_FILENO
                                      : -1;
  const std::string term = get_env("TERM").value_or("dumb");
  options.terminal = fd >= 0 && isatty(fd) == 1 && term != "dumb";
  options.colour = options.terminal && get_env("NO_COLOR").value_or("").empty();
  if (options.terminal) options.width = [fd] { return WidthOf(fd); };
  return options;
}

}  // namespace disttrain
