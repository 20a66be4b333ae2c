// SPDX-License-Identifier: Apache-2.0
#include "controller/local/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "fmt/format.h"

namespace disttrain {
namespace {

// The parent in /proc/<pid>/stat; 0 if it is gone. The command's name, in
// parentheses, may itself hold spaces and parentheses.
pid_t ParentOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(file, stat);
  const size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || stat.size() < end_of_name + 4) {
    return 0;
  }
  const char* begin = stat.data() + end_of_name + 4;  // ") S "
  pid_t parent = 0;
  std::from_chars(begin, stat.data() + stat.size(), parent);
  return parent;
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return pids;
  while (const dirent* entry = readdir(proc.get())) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [parsed, error] = std::from_chars(entry->d_name, end, pid);
    if (error == std::errc() && parsed == end) pids.push_back(pid);
  }
  return pids;
}

}  // namespace

std::vector<pid_t> ChildrenOfSelf() {
  const pid_t self = getpid();
  std::vector<pid_t> children;
  for (const pid_t pid : AllProcesses()) {
    if (ParentOf(pid) == self) children.push_back(pid);
  }
  return children;
}

pid_t SessionOf(pid_t pid) { return std::max(getsid(pid), 0); }

bool HasEnvironmentEntry(pid_t pid, std::string_view entry) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  std::string item;
  while (std::getline(file, item, '\0')) {
    if (item == entry) return true;
  }
  return false;
}

}  // namespace disttrain
