// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/progress_line.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr int kMinBar = 10;
constexpr int kMaxBar = 40;

std::optional<int64_t> IntegerAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

// "212.4": figures that people compare at a glance need no more digits.
std::string Rounded(const std::string& figure, const char* format) {
  char* end = nullptr;
  const double value = std::strtod(figure.c_str(), &end);
  if (figure.empty() || *end != '\0') return figure;
  return fmt::format(fmt::runtime(format), value);
}

std::string Steps(const JobProgress& progress) {
  if (!progress.step.has_value()) return progress.message;
  if (!progress.total_steps.has_value()) {
    return fmt::format("step {}", *progress.step);
  }
  return fmt::format("{}/{}", *progress.step, *progress.total_steps);
}

// What follows the bar, most important first.
std::vector<std::string> Figures(const JobProgress& progress,
                                 absl::Duration elapsed) {
  std::vector<std::string> figures;
  if (!Steps(progress).empty()) figures.push_back(Steps(progress));
  if (!progress.reward.empty()) {
    figures.push_back("reward " + Rounded(progress.reward, "{:.1f}"));
  }
  if (!progress.loss.empty()) {
    figures.push_back("loss " + Rounded(progress.loss, "{:.4g}"));
  }
  if (!progress.steps_per_second.empty()) {
    figures.push_back(Rounded(progress.steps_per_second, "{:.1f}") +
                      " steps/s");
  }
  figures.push_back(ClockText(elapsed));
  if (progress.eta_seconds.has_value()) {
    figures.push_back("ETA " + ClockText(absl::Seconds(*progress.eta_seconds)));
  }
  return figures;
}

std::string Head(const JobProgress& progress) {
  std::string head = fmt::format("{} {}", progress.job, progress.phase);
  if (progress.attempt > 0) head += fmt::format(" r{}", progress.attempt);
  return head;
}

std::string Bar(int64_t step, int64_t total, int width) {
  const double share = std::clamp(
      static_cast<double>(step) / static_cast<double>(total), 0., 1.);
  const int inner = width - 2;
  const int done = static_cast<int>(share * inner);
  std::string bar(static_cast<size_t>(done), '=');
  if (done < inner) bar += '>';
  bar.resize(static_cast<size_t>(inner), ' ');
  return fmt::format("[{}]", bar);
}

// Columns, if every character takes one: continuation bytes take none.
int Columns(const std::string& text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Cut(std::string text, int width) {
  while (Columns(text) > width) text.pop_back();
  return text;
}

}  // namespace

JobProgress ProgressOf(const Json& job) {
  const Json status = job.value("status", Json::object());
  const Json training = status.value("training", Json::object());
  JobProgress progress{
      .job = TextAt(job.value("metadata", Json::object()), "name"),
      .phase = TextAt(status, "phase"),
      .message = TextAt(status, "message"),
      .attempt = static_cast<int>(IntegerAt(status, "attempt").value_or(0)),
      .step = IntegerAt(training, "step"),
      .total_steps = IntegerAt(training, "totalSteps"),
      .reward = TextAt(training, "reward"),
      .loss = TextAt(training, "loss"),
      .steps_per_second = TextAt(training, "stepsPerSecond"),
      .eta_seconds = IntegerAt(training, "etaSeconds")};
  if (progress.phase.empty()) progress.phase = "Pending";
  return progress;
}

std::string ProgressLine(const JobProgress& progress, absl::Duration elapsed,
                         int width) {
  std::string line = Head(progress);
  std::string tail;
  const bool bar = progress.step.has_value() &&
                   progress.total_steps.value_or(0) > 0 &&
                   Columns(line) + 1 + kMinBar < width;
  const int reserved = Columns(line) + (bar ? 1 + kMinBar : 0);
  for (const std::string& figure : Figures(progress, elapsed)) {
    if (reserved + Columns(tail) + 2 + Columns(figure) > width) break;
    tail.append("  ").append(figure);
  }
  if (bar) {
    const int left = width - Columns(line) - 1 - Columns(tail);
    line.append(" ").append(Bar(*progress.step, *progress.total_steps,
                                std::clamp(left, kMinBar, kMaxBar)));
  }
  return Cut(line + tail, width);
}

std::string PlainProgress(const JobProgress& progress, absl::Duration elapsed) {
  std::string line = Head(progress);
  for (const std::string& figure : Figures(progress, elapsed)) {
    line.append("  ").append(figure);
  }
  return line;
}

std::string ClockText(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(duration), 0);
  const int64_t hours = seconds / 3600;
  const int64_t minutes = seconds / 60 % 60;
  if (hours > 0) {
    return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  }
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

}  // namespace disttrain
