// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "worker/transport/endpoint.h"

namespace disttrain::transport {

// Long enough for a loaded machine under a sanitizer; no test waits it out.
inline absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/dtXXXXXX";
    path_ = ::mkdtemp(path);
  }
  ~TemporaryFolder() {
    const std::string command = "rm -rf " + path_;
    if (std::system(command.c_str()) != 0) ADD_FAILURE() << command;
  }
  const std::string& path() const { return path_; }
  std::string Socket(const std::string& name) const {
    return "unix:" + path_ + "/" + name;
  }

 private:
  std::string path_;
};

// One rank of a test: an endpoint, and a handler that does what it is told.
class Node : public Handler {
 public:
  using OnMessageFn = std::function<void(PeerId, ReceivedMessage)>;

  explicit Node(EndpointOptions options) : options_(std::move(options)) {
    auto endpoint = Endpoint::Listen(options_);
    if (!endpoint.ok()) {
      ADD_FAILURE() << endpoint.status();
      std::abort();
    }
    endpoint_ = *std::move(endpoint);
  }
  ~Node() override { endpoint_->Close(absl::Now() + absl::Seconds(5)); }

  // Set before Start.
  void set_on_message(OnMessageFn on_message) {
    on_message_ = std::move(on_message);
  }
  void Start(const std::vector<PeerAddress>& peers) {
    endpoint_->Start(peers, this);
  }
  PeerAddress address() const { return {options_.self, endpoint_->address()}; }
  Endpoint* operator->() const { return endpoint_.get(); }

  absl::StatusOr<std::vector<MutableBuffer>> Allocate(
      PeerId, std::string_view, absl::Span<const uint64_t> sizes) override {
    std::vector<MutableBuffer> buffers;
    for (const uint64_t size : sizes) {
      std::shared_ptr<char[]> memory(new char[size]);
      buffers.push_back({memory.get(), size, memory});
    }
    absl::MutexLock lock(&mu_);
    for (const MutableBuffer& buffer : buffers) {
      allocated_.push_back(buffer.data);
    }
    return buffers;
  }

  void OnMessage(PeerId from, ReceivedMessage message) override {
    if (on_message_) on_message_(from, std::move(message));
    ++received_;
    endpoint_->Wake();
  }

  void OnPeerLost(PeerId peer, const absl::Status& reason) override {
    absl::MutexLock lock(&mu_);
    lost_[peer.rank].push_back(disttrain::Message(reason));
  }

  void OnPeerLeft(PeerId peer) override {
    absl::MutexLock lock(&mu_);
    left_.push_back(peer.rank);
  }

  // Waits until the peer is lost; why, "" if it is not in time.
  std::string AwaitLost(int rank) {
    absl::MutexLock lock(&mu_);
    const auto lost = [this, rank] { return !lost_[rank].empty(); };
    if (!mu_.AwaitWithDeadline(absl::Condition(&lost), Soon())) return "";
    return lost_[rank].front();
  }
  bool AwaitLeft(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto left = [this, count] { return left_.size() >= count; };
    return mu_.AwaitWithDeadline(absl::Condition(&left), Soon());
  }
  bool AwaitReceived(int count) {
    return endpoint_->Wait([this, count] { return received_ >= count; },
                           Soon());
  }
  size_t losses(int rank) {
    absl::MutexLock lock(&mu_);
    return lost_[rank].size();
  }
  int received() const { return received_; }
  std::vector<void*> allocated() {
    absl::MutexLock lock(&mu_);
    return allocated_;
  }

 private:
  EndpointOptions options_;
  std::unique_ptr<Endpoint> endpoint_;
  OnMessageFn on_message_;
  std::atomic<int> received_ = 0;
  absl::Mutex mu_;
  std::map<int, std::vector<std::string>> lost_ ABSL_GUARDED_BY(mu_);
  std::vector<int> left_ ABSL_GUARDED_BY(mu_);
  std::vector<void*> allocated_ ABSL_GUARDED_BY(mu_);
};

inline EndpointOptions OptionsFor(int rank, std::string listen) {
  EndpointOptions options;
  options.job_uid = "job-1";
  options.self = {rank, 0};
  options.listen = std::move(listen);
  return options;
}

inline Message Text(std::string header) { return {std::move(header), {}}; }

// Sends to a peer that may be found lost before the message is queued.
inline void SendToTheLost(Node& from, int rank) {
  const absl::Status status = from->Send(rank, Text("x"), Soon());
  EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
}

inline Message WithBuffer(std::string header,
                          const std::shared_ptr<std::string>& bytes) {
  return {std::move(header), {{bytes->data(), bytes->size(), bytes}}};
}

}  // namespace disttrain::transport
