// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.pb.h"
#include "worker/rendezvous/client.h"
#include "worker/rendezvous/server.h"

// What the tests of the rendezvous share.
namespace disttrain::testing {

// Nobody waits so long for what should happen; only a broken test does.
inline constexpr absl::Duration kGenerous = absl::Seconds(60);
inline absl::Time Deadline() { return absl::Now() + kGenerous; }
inline absl::Time In(int milliseconds) {
  return absl::Now() + absl::Milliseconds(milliseconds);
}

// A folder of its own, removed with what is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  // "unix:<folder>/r.sock"
  std::string socket() const { return "unix:" + path_ + "/r.sock"; }

 private:
  std::string path_;
};

// Rank 0 is agent 0, rank k observer k-1, in pod "pod-k", of job "uid-a".
v1::Caller CallerOf(int rank, int attempt = 0, int incarnation = 0);
v1::Member MemberOf(int rank, int incarnation = 0);
ServerOptions OptionsOf(const std::string& listen, int world_size);

// One rank: its client, and the events it got.
class Rank {
 public:
  Rank(const std::string& target, int rank, int attempt = 0,
       int incarnation = 0);
  ~Rank() { client_.reset(); }

  RendezvousClient& operator*() { return *client_; }
  RendezvousClient* operator->() { return client_.get(); }
  int rank() const { return rank_; }

  absl::StatusOr<std::vector<v1::Member>> Join(
      int world_size, absl::Time deadline = Deadline());
  // Every 50 ms, with `report`.
  void Beat(const v1::Report& report = {});
  // The first event of that kind; an empty one if none came in time.
  v1::Event Await(v1::Event::KindCase kind, absl::Time deadline = Deadline());
  int Count(v1::Event::KindCase kind);
  // Ends the client.
  void Close() { client_.reset(); }

 private:
  const int rank_;
  const int incarnation_;
  absl::Mutex mu_;
  std::vector<v1::Event> events_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RendezvousClient> client_;
};

// A server and all its ranks, joined and beating.
struct World {
  std::unique_ptr<RendezvousServer> server;
  std::vector<std::unique_ptr<Rank>> ranks;
};
World Meet(const ServerOptions& options);

// Waits until `condition` holds; false if it never does.
bool Eventually(const std::function<bool()>& condition);

}  // namespace disttrain::testing
