// SPDX-License-Identifier: Apache-2.0
//
// gRPC C++: a blocking unary call, insecure channel, synchronous server.
//
//   grpc_unary unix|tcp
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "tests/bench/contender.h"
#include "tests/bench/echo.grpc.pb.h"

namespace disttrain::bench {
namespace {

class EchoServer final : public EchoService::Service {
  grpc::Status Echo(grpc::ServerContext* /*context*/, const Floats* request,
                    Floats* response) override {
    response->set_values(request->values());
    return grpc::Status::OK;
  }
};

void ServePeer(const std::string& listen) {
  EchoServer service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) Die("cannot serve at " + listen);
  Ready(listen.starts_with("unix:") ? listen
                                    : "127.0.0.1:" + std::to_string(port));
  server->Wait();
}

class GrpcUnary final : public Contender {
 public:
  explicit GrpcUnary(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = EchoService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }

  void Prepare(size_t floats) override {
    request_.set_values(std::string(floats * sizeof(float), 1));
  }
  void Call() override {
    grpc::ClientContext context;
    const grpc::Status status = stub_->Echo(&context, request_, &response_);
    if (!status.ok()) Die("Echo: " + status.error_message());
  }

 private:
  std::unique_ptr<EchoService::Stub> stub_;
  Floats request_;
  Floats response_;
};

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain::bench;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--peer") {
    ServePeer(arguments[1]);
    return 0;
  }
  const PeerProcess peer({arguments.at(0) == "tcp"
                              ? "127.0.0.1:0"
                              : "unix:" + SocketFolder() + "/grpc.sock"});
  GrpcUnary contender(peer.address());
  Serve(contender, peer.pid());
}
