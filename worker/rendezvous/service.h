// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "disttrain/v1/rendezvous.grpc.pb.h"
#include "worker/rendezvous/hub.h"
#include "worker/rendezvous/server.h"

namespace disttrain {

// The generated service, handing every call on to the hub.
class RendezvousServer::Service final : public v1::Rendezvous::CallbackService {
 public:
  explicit Service(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Join(Context* context, const v1::JoinRequest* request,
                v1::JoinResponse* response) override;
  grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::Event>* Heartbeat(
      Context* context) override;
  Reactor* ReportFailure(Context* context,
                         const v1::ReportFailureRequest* request,
                         v1::ReportFailureResponse* response) override;
  Reactor* Barrier(Context* context, const v1::BarrierRequest* request,
                   v1::BarrierResponse* response) override;
  Reactor* Finish(Context* context, const v1::FinishRequest* request,
                  v1::FinishResponse* response) override;
  Reactor* Stop(Context* context, const v1::StopRequest* request,
                v1::StopResponse* response) override;
  Reactor* GetProgress(Context* context, const v1::GetProgressRequest* request,
                       v1::Progress* response) override;
  Reactor* Set(Context* context, const v1::SetRequest* request,
               v1::SetResponse* response) override;
  Reactor* Get(Context* context, const v1::GetRequest* request,
               v1::GetResponse* response) override;
  Reactor* Wait(Context* context, const v1::WaitRequest* request,
                v1::WaitResponse* response) override;
  Reactor* Check(Context* context, const v1::CheckRequest* request,
                 v1::CheckResponse* response) override;
  Reactor* Add(Context* context, const v1::AddRequest* request,
               v1::AddResponse* response) override;
  Reactor* CompareSet(Context* context, const v1::CompareSetRequest* request,
                      v1::CompareSetResponse* response) override;
  Reactor* Delete(Context* context, const v1::DeleteRequest* request,
                  v1::DeleteResponse* response) override;
  Reactor* CountKeys(Context* context, const v1::CountKeysRequest* request,
                     v1::CountKeysResponse* response) override;

 private:
  const std::shared_ptr<Hub> hub_;
};

}  // namespace disttrain
