// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.grpc.pb.h"
#include "worker/rendezvous/client.h"
#include "worker/rendezvous/client_connection.h"

namespace disttrain {

// The `heartbeat` thread: keeps one stream to rank 0, sends reports, delivers
// events, and decides when rank 0 is lost.
//
// Threads: Stop may be called by any thread but its own.
class RendezvousClient::HeartbeatLoop {
 public:
  HeartbeatLoop(Connection& connection, absl::Duration interval,
                std::function<v1::Report()> report,
                std::function<void(const v1::Event&)> on_event);
  ~HeartbeatLoop();
  HeartbeatLoop(const HeartbeatLoop&) = delete;
  HeartbeatLoop& operator=(const HeartbeatLoop&) = delete;

  // Says goodbye, and joins the thread. Calling it again does nothing.
  // Blocking: less than a second, and while on_event runs.
  void Stop();

 private:
  class Stream;

  void Run();
  // One stream from its start to its end; then why it ended.
  void RunStream();
  // Sends a report if it is time, and waits until there is something to do.
  // False if the stream is over.
  bool Step(Stream& stream);
  void Goodbye(Stream& stream);
  void Close(Stream& stream);
  void Judge(const absl::Status& status, const AnswerMarks& marks);
  void Handle(const v1::Event& event);
  void DeliverFailure();
  void FailAbout(const v1::Member& member, const std::string& cause);

  Connection& connection_;
  const absl::Duration interval_;
  const std::function<v1::Report()> report_;
  const std::function<void(const v1::Event&)> on_event_;

  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool wake_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<v1::Event> events_ ABSL_GUARDED_BY(mu_);

  // Of the thread alone.
  absl::Time next_beat_ = absl::InfinitePast();
  absl::Time heard_ = absl::InfinitePast();
  absl::Time broken_ = absl::InfiniteFuture();  // since when
  bool failure_delivered_ = false;
  bool finish_seen_ = false;
  bool stop_seen_ = false;

  std::thread thread_;
};

}  // namespace disttrain
