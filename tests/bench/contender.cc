// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/contender.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace disttrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<double> RoundTrips(Contender& contender, size_t floats,
                               size_t calls) {
  contender.Prepare(floats);
  std::vector<double> seconds;
  seconds.reserve(calls);
  for (size_t i = 0; i < calls; ++i) {
    const Clock::time_point start = Clock::now();
    contender.Call();
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

// The kernel's high-water mark ("VmHWM", proc(5)).
size_t PeakResidentBytes(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  Die(fmt::format("process {} has no VmHWM", pid));
}

}  // namespace

void Serve(Contender& contender, pid_t peer) {
  std::cout << "ready " << peer << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request;
    size_t floats = 0;
    size_t calls = 0;
    words >> request;
    nlohmann::json answer;
    if (request == "memory") {
      answer = {PeakResidentBytes(getpid()), PeakResidentBytes(peer)};
    } else if (request == "round_trip" && words >> floats >> calls) {
      answer = RoundTrips(contender, floats, calls);
    } else {
      Die(fmt::format("unknown request '{}'", line));
    }
    std::cout << answer << std::endl;
  }
}

PeerProcess::PeerProcess(const std::vector<std::string>& arguments) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) Die("pipe2");
  std::vector<std::string> words = {"peer", "--peer"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(output[1], STDOUT_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(output[1]);
  char byte = 0;
  while (read(output[0], &byte, 1) == 1 && byte != '\n') address_ += byte;
  close(output[0]);
  if (byte != '\n') Die("the peer ended before it was ready");
}

PeerProcess::~PeerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Ready(const std::string& address) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::cout << address << std::endl;
}

std::string SocketFolder() {
  struct Folder {
    Folder() {
      if (mkdtemp(path.data()) == nullptr) Die("mkdtemp " + path);
    }
    ~Folder() {
      std::error_code ignored;  // what is left is a folder in /tmp
      std::filesystem::remove_all(path, ignored);
    }
    std::string path = "/tmp/disttrain-bench-XXXXXX";
  };
  static const Folder kFolder;
  return kFolder.path;
}

void Die(const std::string& what) {
  fmt::print(stderr, "bench: {}: {}\n", what,
             std::generic_category().message(errno));
  std::exit(1);
}

}  // namespace disttrain::bench
