// SPDX-License-Identifier: Apache-2.0
// Rank 1 as a process of its own: prints its address, takes rank 0's from
// standard input, and echoes what comes until it is killed, or told "leave".
#include <atomic>
#include <iostream>
#include <string>
#include <utility>

#include "worker/transport/endpoint.h"

namespace disttrain::transport {
namespace {

class Echo : public Handler {
 public:
  explicit Echo(Endpoint& endpoint) : endpoint_(endpoint) {}

  absl::StatusOr<std::vector<MutableBuffer>> Allocate(
      PeerId, std::string_view, absl::Span<const uint64_t> sizes) override {
    std::vector<MutableBuffer> buffers;
    for (const uint64_t size : sizes) {
      std::shared_ptr<char[]> memory(new char[size]);
      buffers.push_back({memory.get(), size, memory});
    }
    return buffers;
  }

  void OnMessage(PeerId from, ReceivedMessage message) override {
    endpoint_.ReleaseLeadership();
    if (message.header == "leave") {
      ended_ = true;
      endpoint_.Wake();
      return;
    }
    Message reply{std::move(message.header), {}};
    for (MutableBuffer& buffer : message.buffers) {
      reply.buffers.push_back({buffer.data, buffer.size, buffer.owner});
    }
    const absl::Status status =
        endpoint_.Send(from.rank, std::move(reply), absl::InfiniteFuture());
    if (!status.ok()) std::cerr << status << std::endl;
  }

  void OnPeerLost(PeerId, const absl::Status& reason) override {
    std::cerr << reason << std::endl;
    ended_ = true;
    endpoint_.Wake();
  }

  bool ended() const { return ended_; }

 private:
  Endpoint& endpoint_;
  std::atomic<bool> ended_ = false;
};

int Main(const std::string& listen) {
  EndpointOptions options;
  options.job_uid = "job-1";
  options.self = {1, 0};
  options.listen = listen;
  auto endpoint = Endpoint::Listen(options);
  if (!endpoint.ok()) {
    std::cerr << endpoint.status() << std::endl;
    return 1;
  }
  std::cout << (*endpoint)->address() << std::endl;
  std::string rank0;
  std::getline(std::cin, rank0);
  Echo echo(**endpoint);
  (*endpoint)->Start({{{0, 0}, rank0}}, &echo);
  (*endpoint)->Wait([&echo] { return echo.ended(); }, absl::InfiniteFuture());
  (*endpoint)->Close(absl::Now() + absl::Seconds(10));
  return 0;
}

}  // namespace
}  // namespace disttrain::transport

int main(int, char** argv) { return disttrain::transport::Main(argv[1]); }
