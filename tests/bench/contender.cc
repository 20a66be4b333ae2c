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
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <latch>
#include <sstream>
#include <system_error>
#include <thread>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace disttrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<double> RoundTrips(Contender& contender, size_t calls) {
  std::vector<double> seconds;
  seconds.reserve(calls);
  for (size_t i = 0; i < calls; ++i) {
    const Clock::time_point start = Clock::now();
    contender.Call();
    seconds.push_back(SecondsSince(start));
  }
  return seconds;
}

nlohmann::json InFlight(Contender& contender, size_t calls, size_t depth) {
  struct Pending {
    Clock::time_point start;
    std::function<void()> wait;
  };
  std::deque<Pending> pending;
  std::vector<double> seconds;
  seconds.reserve(calls);
  const Clock::time_point begin = Clock::now();
  while (seconds.size() < calls) {
    if (pending.size() < depth && seconds.size() + pending.size() < calls) {
      const Clock::time_point start = Clock::now();
      pending.push_back({start, contender.Start()});
      continue;
    }
    pending.front().wait();
    seconds.push_back(SecondsSince(pending.front().start));
    pending.pop_front();
  }
  return {{"seconds", seconds}, {"total", SecondsSince(begin)}};
}

nlohmann::json Callers(Contender& contender, size_t calls, size_t callers) {
  std::vector<std::vector<double>> shares(callers);
  std::vector<std::thread> threads;
  std::latch everybody(static_cast<std::ptrdiff_t>(callers) + 1);
  for (std::vector<double>& share : shares) {
    threads.emplace_back([&contender, &everybody, &share, calls, callers] {
      everybody.arrive_and_wait();
      share = RoundTrips(contender, calls / callers);
    });
  }
  everybody.arrive_and_wait();
  const Clock::time_point begin = Clock::now();
  for (std::thread& thread : threads) thread.join();
  const double total = SecondsSince(begin);
  std::vector<double> seconds;
  for (const std::vector<double>& share : shares) {
    seconds.insert(seconds.end(), share.begin(), share.end());
  }
  return {{"seconds", seconds}, {"total", total}};
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

std::function<void()> Contender::Start() {
  Die("this contender has one call at a time");
}

void Serve(Contender& contender, pid_t peer) {
  std::cout << "ready " << peer << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request;
    size_t floats = 0;
    size_t calls = 0;
    size_t at_once = 0;
    words >> request;
    if (words >> floats >> calls) contender.Prepare(floats);
    words >> at_once;
    nlohmann::json answer;
    if (request == "memory") {
      answer = {PeakResidentBytes(getpid()), PeakResidentBytes(peer)};
    } else if (request == "round_trip" && calls > 0) {
      answer = RoundTrips(contender, calls);
    } else if (request == "in_flight" && at_once > 0) {
      answer = InFlight(contender, calls, at_once);
    } else if (request == "callers" && at_once > 0) {
      answer = Callers(contender, calls, at_once);
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
