// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/service.h"

#include "worker/rendezvous/heartbeat_stream.h"

namespace disttrain {

using Reactor = grpc::ServerUnaryReactor;

grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::Event>*
RendezvousServer::Service::Heartbeat(Context* context) {
  return HeartbeatStream::Start(hub_, context);
}

Reactor* RendezvousServer::Service::Join(Context* context,
                                         const v1::JoinRequest* request,
                                         v1::JoinResponse* response) {
  return hub_->Join(context, *request, response);
}

Reactor* RendezvousServer::Service::ReportFailure(
    Context* context, const v1::ReportFailureRequest* request,
    v1::ReportFailureResponse* response) {
  return hub_->ReportFailure(context, *request, response);
}

Reactor* RendezvousServer::Service::Barrier(Context* context,
                                            const v1::BarrierRequest* request,
                                            v1::BarrierResponse*) {
  return hub_->Barrier(context, *request);
}

Reactor* RendezvousServer::Service::Finish(Context* context,
                                           const v1::FinishRequest* request,
                                           v1::FinishResponse*) {
  return hub_->Finish(context, *request);
}

Reactor* RendezvousServer::Service::Stop(Context* context,
                                         const v1::StopRequest* request,
                                         v1::StopResponse*) {
  return hub_->Stop(context, *request);
}

Reactor* RendezvousServer::Service::GetProgress(
    Context* context, const v1::GetProgressRequest* request,
    v1::Progress* response) {
  return hub_->GetProgress(context, *request, response);
}

Reactor* RendezvousServer::Service::Set(Context* context,
                                        const v1::SetRequest* request,
                                        v1::SetResponse*) {
  return hub_->Set(context, *request);
}

Reactor* RendezvousServer::Service::Get(Context* context,
                                        const v1::GetRequest* request,
                                        v1::GetResponse* response) {
  return hub_->Get(context, *request, response);
}

Reactor* RendezvousServer::Service::Wait(Context* context,
                                         const v1::WaitRequest* request,
                                         v1::WaitResponse*) {
  return hub_->Wait(context, *request);
}

Reactor* RendezvousServer::Service::Check(Context* context,
                                          const v1::CheckRequest* request,
                                          v1::CheckResponse* response) {
  return hub_->Check(context, *request, response);
}

Reactor* RendezvousServer::Service::Add(Context* context,
                                        const v1::AddRequest* request,
                                        v1::AddResponse* response) {
  return hub_->Add(context, *request, response);
}

Reactor* RendezvousServer::Service::CompareSet(
    Context* context, const v1::CompareSetRequest* request,
    v1::CompareSetResponse* response) {
  return hub_->CompareSet(context, *request, response);
}

Reactor* RendezvousServer::Service::Delete(Context* context,
                                           const v1::DeleteRequest* request,
                                           v1::DeleteResponse* response) {
  return hub_->Delete(context, *request, response);
}

Reactor* RendezvousServer::Service::CountKeys(
    Context* context, const v1::CountKeysRequest* request,
    v1::CountKeysResponse* response) {
  return hub_->CountKeys(context, *request, response);
}

}  // namespace disttrain
