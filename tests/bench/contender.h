// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

// What the programs that `make bench` compares have in common.
namespace disttrain::bench {

// One way to send some floats to another process and get them back. Errors end
// the program: a figure of a run that failed is none.
class Contender {
 public:
  virtual ~Contender() = default;

  // Makes a payload of so many float32 for the calls that follow.
  virtual void Prepare(size_t floats) = 0;
  // Threads: many at once, if it has Start. Blocking: until the payload has
  // come back.
  virtual void Call() = 0;
  // Starts a call; what it returns blocks until the payload has come back.
  // Those that can have one call at a time only leave it as it is: it dies.
  virtual std::function<void()> Start();
};

// Says "ready PID", with the peer's process id, then answers requests on
// standard input, each with one line of JSON:
//
//   round_trip FLOATS CALLS
//     The seconds of each call, one after the other.
//   in_flight FLOATS CALLS DEPTH
//     One thread with so many calls in flight: it waits for the oldest, then
//     starts another. {"seconds": [of each call], "total": of all together}
//   callers FLOATS CALLS THREADS
//     So many threads, each with its share of the calls, one after the other.
//     The same answer.
//   memory
//     Peak resident bytes of this process and the peer.
//
// Returns at the end of standard input.
void Serve(Contender& contender, pid_t peer);

// The other end: this program again, as `program --peer ARGUMENTS…`.
class PeerProcess {
 public:
  // Blocking: until it has called Ready.
  explicit PeerProcess(const std::vector<std::string>& arguments);
  // Kills it.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  pid_t pid() const { return pid_; }
  // What it gave to Ready.
  const std::string& address() const { return address_; }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

// In the peer: says where it can be reached. It is killed when it is no longer
// needed, also if its maker dies.
void Ready(const std::string& address);

// A folder for sockets, removed when the program ends.
std::string SocketFolder();

// Ends the program, with `what` and errno's text.
[[noreturn]] void Die(const std::string& what);

}  // namespace disttrain::bench
