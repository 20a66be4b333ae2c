// SPDX-License-Identifier: Apache-2.0
//
// gRPC C++: unary calls over an insecure channel. A blocking call meets a
// synchronous server; what has many in flight uses the callback API on both
// ends.
//
//   grpc_unary unix|tcp
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "tests/bench/contender.h"
#include "tests/bench/echo.grpc.pb.h"

namespace disttrain::bench {
namespace {

class EchoServer final : public EchoService::WithCallbackMethod_EchoByCallback<
                             EchoService::Service> {
  grpc::Status Echo(grpc::ServerContext* /*context*/, const Floats* request,
                    Floats* response) override {
    response->set_values(request->values());
    return grpc::Status::OK;
  }
  grpc::ServerUnaryReactor* EchoByCallback(grpc::CallbackServerContext* context,
                                           const Floats* request,
                                           Floats* response) override {
    response->set_values(request->values());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
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
    thread_local Floats response;  // keeps its memory
    grpc::ClientContext context;
    Check(stub_->Echo(&context, request_, &response));
  }
  std::function<void()> Start() override {
    struct Pending {
      grpc::ClientContext context;
      Floats response;
      std::promise<grpc::Status> status;
    };
    const auto pending = std::make_shared<Pending>();
    stub_->async()->EchoByCallback(&pending->context, &request_,
                                   &pending->response,
                                   [pending](const grpc::Status& status) {
                                     pending->status.set_value(status);
                                   });
    return [pending] { Check(pending->status.get_future().get()); };
  }

 private:
  static void Check(const grpc::Status& status) {
    if (!status.ok()) Die("Echo: " + status.error_message());
  }

  std::unique_ptr<EchoService::Stub> stub_;
  Floats request_;
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
