// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "proto/runtime/check.h"

namespace disttrain {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// What SignalThread waits for. Linux queues a blocked signal even if it is
// ignored, so an ignored SIGHUP must stay out.
sigset_t WaitedSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  if (!IsIgnored(SIGHUP)) ::sigaddset(&signals, SIGHUP);
  return signals;
}

bool IsBlocked(int signal) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return ::sigismember(&blocked, signal) == 1;
}

}  // namespace

void NameThread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

void BlockSignals() {
  sigset_t signals = WaitedSignals();
  ::sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void UnblockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGHUP);
  ::sigaddset(&signals, SIGPIPE);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

SignalThread::SignalThread(std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)) {
  DISTTRAIN_CHECK(IsBlocked(SIGTERM));
  thread_ = std::thread([this] { Run(); });
}

SignalThread::~SignalThread() {
  {
    const absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  // To this thread alone, which has it blocked, only to end its wait.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  ::pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void SignalThread::Run() {
  NameThread("signals");
  const sigset_t signals = WaitedSignals();
  while (true) {
    int signal = 0;
    const int error = ::sigwait(&signals, &signal);
    {
      const absl::MutexLock lock(&mu_);
      if (stopping_) return;
    }
    if (error == 0) on_signal_(signal);
  }
}

}  // namespace disttrain
