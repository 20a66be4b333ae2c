// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "worker/rpc/peer.h"

namespace disttrain::rpc {

enum class ErrorCode {
  kOk,
  kRemoteException,
  kUnknownMethod,
  kInvalidArgument,
  kDeadlineExceeded,
  kCancelled,
  kReferenceLost,
  kShuttingDown,
  kPeerLost,
  kOverloaded,
};

// "deadline_exceeded": what metrics and /debug/calls show.
std::string_view Name(ErrorCode code);

// What a call was about, for messages.
struct CallSite {
  Peer peer;               // the other side
  std::string method;      // "Observer.RunEpisode"; "Observer" for a creation
  absl::Duration elapsed;  // since the call was made
};

// Any failure of a remote call. what() reads
// "observer 1 (rank 2, pod cartpole-observer-1): Observer.RunEpisode: <detail>
// (after 0.53 s)".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const CallSite& site, const std::string& detail);

  ErrorCode code() const { return code_; }
  const Peer& peer() const { return site_.peer; }
  const std::string& method() const { return site_.method; }
  absl::Duration elapsed() const { return site_.elapsed; }
  // The message alone, without peer, method and time.
  const std::string& detail() const { return detail_; }

 private:
  ErrorCode code_;
  CallSite site_;
  std::string detail_;
};

// The peer's process or the connection to it is gone.
class PeerLost : public Error {
 public:
  PeerLost(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kPeerLost, site, detail) {}
};

// No reply in time. The message lists the calls in flight at that moment.
class DeadlineExceeded : public Error {
 public:
  DeadlineExceeded(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kDeadlineExceeded, site, detail) {}
};

// Future::Cancel(), Agent::Abort(), a dropped Promise, or the surrounding call
// was cancelled.
class Cancelled : public Error {
 public:
  Cancelled(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kCancelled, site, detail) {}
};

// The method or constructor threw; the detail is its exception's message.
class RemoteException : public Error {
 public:
  RemoteException(const CallSite& site, const std::string& detail,
                  ErrorCode cause = ErrorCode::kRemoteException)
      : Error(ErrorCode::kRemoteException, site, detail), cause_(cause) {}

  // kPeerLost and so on if what came out of the method was itself an
  // rpc::Error of a call that it had made; else kRemoteException.
  ErrorCode cause() const { return cause_; }

 private:
  ErrorCode cause_;
};

// No such class or method over there; the message lists what is registered.
class UnknownMethod : public Error {
 public:
  UnknownMethod(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kUnknownMethod, site, detail) {}
};

// A number, type or range of arguments that the method does not take, or a
// value that cannot travel (a tensor on a GPU, a message over the limits).
class InvalidArgument : public Error {
 public:
  InvalidArgument(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kInvalidArgument, site, detail) {}
};

// The object is gone: released, or its handle's sender died too early.
class ReferenceLost : public Error {
 public:
  ReferenceLost(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kReferenceLost, site, detail) {}
};

// This agent or the peer's is leaving.
class ShuttingDown : public Error {
 public:
  ShuttingDown(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kShuttingDown, site, detail) {}
};

// The peer runs as many calls as it may (AgentOptions::max_running_calls).
class Overloaded : public Error {
 public:
  Overloaded(const CallSite& site, const std::string& detail)
      : Error(ErrorCode::kOverloaded, site, detail) {}
};

namespace internal {

// An exception of the class that belongs to `code`, as a pointer.
std::exception_ptr MakeError(ErrorCode code, const CallSite& site,
                             const std::string& detail,
                             ErrorCode cause = ErrorCode::kRemoteException);

// The message of an exception of any type: rpc::Error, c10::Error (without its
// backtrace), std::exception, or "unknown exception".
std::string MessageOf(const std::exception_ptr& error);
// Its code if it is an rpc::Error, else kRemoteException.
ErrorCode CodeOf(const std::exception_ptr& error);

}  // namespace internal
}  // namespace disttrain::rpc
