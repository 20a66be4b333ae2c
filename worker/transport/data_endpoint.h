// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/log.h"
#include "worker/transport/acceptor.h"
#include "worker/transport/connection.h"
#include "worker/transport/dialer.h"
#include "worker/transport/endpoint.h"
#include "worker/transport/peer.h"
#include "worker/transport/reactor.h"

namespace disttrain::transport {

// The Endpoint over sockets: holds the table of peers and decides, under one
// lock, which connection serves which peer. Reading is the reactor's, writing
// the send queues', dialling the dialer's.
class DataEndpoint final : public Endpoint, public Connection::Owner {
 public:
  DataEndpoint(const EndpointOptions& options, std::string address,
               std::unique_ptr<Reactor> reactor);
  ~DataEndpoint() override;

  // Takes the listener that `address` belongs to.
  absl::Status Init(Listener listener);

  std::string address() const override { return address_; }
  void Start(std::vector<PeerAddress> peers, Handler* handler) override;
  void Replace(const PeerAddress& peer) override;
  absl::Status Send(int rank, Message message, absl::Time deadline) override;
  bool Wait(const std::function<bool()>& done, absl::Time deadline) override;
  void Wake() override { reactor_->Wake(); }
  void ReleaseLeadership() override { reactor_->Release(); }
  bool OnLentThread() const override;
  void Run(std::function<void()> task) override;
  void Close(absl::Time deadline) override;
  Statistics statistics() const override;

 private:
  using PeerPtr = std::shared_ptr<Peer>;
  using ConnectionPtr = std::shared_ptr<Connection>;

  struct Greeting {
    ConnectionPtr connection;
    absl::Time deadline;
  };

  // Connection::Owner
  absl::Status OnHello(const ConnectionPtr& connection,
                       const Hello& hello) override;
  absl::StatusOr<std::vector<MutableBuffer>> Allocate(
      PeerId from, std::string_view header,
      absl::Span<const uint64_t> sizes) override;
  void OnMessage(PeerId from, ReceivedMessage message) override;
  absl::AnyInvocable<void()> OnEnd(const ConnectionPtr& connection,
                                   const absl::Status& reason) override;

  // Accepted connections have not said who they are.
  void OnAccept(UniqueFd fd);
  std::vector<ConnectionPtr> OverdueGreetings(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Refusal> Judge(const Hello& hello)
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  PeerPtr MakePeer(const PeerAddress& address);
  absl::StatusOr<PeerPtr> FindPeer(int rank) ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void StartDial(const PeerPtr& peer);
  absl::Status BeginDial(const PeerPtr& peer);
  bool EnterDial(const PeerPtr& peer, Link link);
  void OnDialled(const PeerPtr& peer,
                 absl::StatusOr<std::unique_ptr<Stream>> stream);
  // Makes `connection` the one to its peer; `preface` is written first.
  void Establish(const ConnectionPtr& connection, std::string preface)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(const ConnectionPtr& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Hello HelloTo(const PeerId& peer) const;

  // The peers that there are links to; nothing if Close was called before.
  std::optional<std::vector<PeerPtr>> BeginClose();
  void EndWriting();

  const EndpointOptions options_;
  const std::string address_;
  const Log log_;
  std::atomic<uint64_t> sent_bytes_ = 0;
  std::atomic<uint64_t> received_bytes_ = 0;
  Handler* handler_ = nullptr;  // set once, before anything is polled
  std::shared_ptr<Acceptor> acceptor_;

  mutable absl::Mutex mu_;
  std::map<int, PeerPtr> peers_ ABSL_GUARDED_BY(mu_);
  std::list<Greeting> greetings_ ABSL_GUARDED_BY(mu_);
  int connections_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;

  const std::unique_ptr<Reactor> reactor_;
  Dialer dialer_;
};

}  // namespace disttrain::transport
