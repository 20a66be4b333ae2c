// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/process_collector.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "proto/contract/metric_names.h"

namespace disttrain {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// Fields of /proc/self/stat by their number in proc(5).
struct Stat {
  double user_ticks = 0;      // 14
  double system_ticks = 0;    // 15
  double threads = 0;         // 20
  double start_ticks = 0;     // 22, since boot
  double virtual_bytes = 0;   // 23
  double resident_pages = 0;  // 24
};

std::optional<Stat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // Field 2, the name, is in parentheses and may hold any character.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  Stat stat;
  std::string field;
  for (int number = 3; number <= 24; ++number) {
    if (!(rest >> field)) return std::nullopt;
    double* target = number == 14   ? &stat.user_ticks
                     : number == 15 ? &stat.system_ticks
                     : number == 20 ? &stat.threads
                     : number == 22 ? &stat.start_ticks
                     : number == 23 ? &stat.virtual_bytes
                     : number == 24 ? &stat.resident_pages
                                    : nullptr;
    if (target != nullptr) *target = std::stod(field);
  }
  return stat;
}

// Seconds since the epoch at which the machine booted.
std::optional<double> ReadBootTime() {
  std::ifstream file("/proc/stat");
  std::string key;
  while (file >> key) {
    double seconds = 0;
    if (key == "btime" && file >> seconds) return seconds;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::optional<double> CountOpenFds() {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/proc/self/fd", error);
  if (error) return std::nullopt;
  const auto count = std::distance(begin(folder), end(folder));
  // Not the one that the listing itself had open.
  return static_cast<double>(count - 1);
}

std::optional<double> MaxFds() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(limit.rlim_cur);
}

void Add(std::vector<MetricFamily>& families, const char* name,
         const char* help, MetricType type, std::optional<double> value) {
  if (!value) return;
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
      *value;
  families.push_back(
      {.name = name, .help = help, .type = type, .metric = {metric}});
}

void AddStat(std::vector<MetricFamily>& families, const Stat& stat) {
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  Add(families, metric::kProcessCpu, "User and system CPU time in seconds.",
      MetricType::Counter, (stat.user_ticks + stat.system_ticks) / ticks);
  Add(families, metric::kProcessResidentMemory, "Resident memory in bytes.",
      MetricType::Gauge, stat.resident_pages * page);
  Add(families, metric::kProcessVirtualMemory, "Virtual memory in bytes.",
      MetricType::Gauge, stat.virtual_bytes);
  Add(families, metric::kProcessThreads, "Threads of the process.",
      MetricType::Gauge, stat.threads);
  if (const std::optional<double> boot = ReadBootTime()) {
    Add(families, metric::kProcessStartTime,
        "Start of the process in seconds since the epoch.", MetricType::Gauge,
        *boot + stat.start_ticks / ticks);
  }
}

}  // namespace

std::vector<MetricFamily> ProcessCollector::Collect() const {
  std::vector<MetricFamily> families;
  if (const std::optional<Stat> stat = ReadStat()) AddStat(families, *stat);
  Add(families, metric::kProcessOpenFds, "Open file descriptors.",
      MetricType::Gauge, CountOpenFds());
  Add(families, metric::kProcessMaxFds, "Limit of open file descriptors.",
      MetricType::Gauge, MaxFds());
  return families;
}

}  // namespace disttrain
