// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"

namespace disttrain {

// Marks an answer that is an error as the server's own (text.h).
void AddAnswerMetadata(const absl::Status& status,
                       const std::optional<v1::Failure>& failure,
                       grpc::ServerContextBase* context);

// A unary call that is answered when its time has come. Belongs to gRPC, which
// needs exactly one Answer, and destroys it afterwards: whoever takes it out of
// WaitingCalls (or never put it there) has to answer it.
class WaitingCall final : public grpc::ServerUnaryReactor {
 public:
  enum class Kind { kJoin, kKeys, kBarrier, kReport };

  // `cancelled` gets the ticket if the caller gives up or goes away.
  WaitingCall(Kind what, const v1::Caller& who,
              grpc::CallbackServerContext* context,
              std::function<void(uint64_t)> cancelled)
      : kind(what),
        caller(who),
        context_(context),
        cancelled_(std::move(cancelled)) {}

  void Answer(const absl::Status& status,
              const std::optional<v1::Failure>& failure);

  void OnCancel() override { cancelled_(ticket); }
  void OnDone() override { delete this; }

  const Kind kind;
  const v1::Caller caller;
  uint64_t ticket = 0;
  absl::Time deadline = absl::InfiniteFuture();
  // kKeys: those before `next_key` were seen; a Get has one key.
  std::vector<std::string> keys;
  size_t next_key = 0;
  // Where the answer goes; at most one is set. They belong to gRPC.
  v1::JoinResponse* join = nullptr;
  v1::GetResponse* get = nullptr;
  v1::ReportFailureResponse* report = nullptr;

 private:
  ~WaitingCall() override = default;

  grpc::CallbackServerContext* const context_;
  const std::function<void(uint64_t)> cancelled_;
};

// All calls that wait, found by ticket, by deadline, and by the key they need.
//
// Threads: thread-compatible.
class WaitingCalls {
 public:
  using KeyExists = std::function<bool(const std::string&)>;

  // Gives the call its ticket. A call of kind kKeys waits for keys[next_key].
  void Add(WaitingCall* call);

  // Null if the call was taken before.
  WaitingCall* Take(uint64_t ticket);
  std::vector<WaitingCall*> TakeAll();
  std::vector<WaitingCall*> TakeAll(WaitingCall::Kind kind);
  std::vector<WaitingCall*> TakeExpired(absl::Time now);
  // `key` exists now: takes the calls that have all their keys.
  std::vector<WaitingCall*> TakeReady(const std::string& key,
                                      const KeyExists& exists);

  bool HasJoin(int rank) const;
  absl::Time NextDeadline() const;

 private:
  void Forget(const WaitingCall& call);

  uint64_t last_ticket_ = 0;
  std::map<uint64_t, WaitingCall*> calls_;
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
  std::unordered_map<std::string, std::vector<uint64_t>> by_key_;
};

}  // namespace disttrain
