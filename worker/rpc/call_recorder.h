// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ATen/core/Tensor.h"
#include "worker/rpc/peer.h"

namespace disttrain::rpc {

// The seam by which distributed autograd sees calls; rpc knows no autograd.
//
// One call, in order:
//   caller  CallRecorder::OnRequest     sees and may replace the argument
//                                       tensors; its note travels with them
//   callee  CallReceiver::OnRequest     sees the note, may replace the tensors
//                                       that the method will get
//   callee  ServedRecord::OnReply       sees and may replace the result's
//                                       tensors; its note travels with them
//   caller  RecordedCall::OnReply       may replace the tensors of the result
// A caller without a recorder sends no note, and the callee then asks nobody.

// A call that a recorder has seen, until it ends.
class RecordedCall {
 public:
  virtual ~RecordedCall() = default;

  // Threads: the thread that read the reply; must not block.
  virtual void OnReply(std::string_view note,
                       std::vector<at::Tensor>& results) = 0;
  // Instead of OnReply: the call failed or was cancelled.
  virtual void OnError() {}
};

// Records the calls that one thread makes while a Scope is alive.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;

  // Before the request is written. `note` is what the callee's CallReceiver
  // sees; left empty, the callee is not told. Threads: the caller's.
  // May return null: nothing to be told about the reply.
  virtual std::unique_ptr<RecordedCall> OnRequest(
      const Peer& callee, std::string_view method,
      std::vector<at::Tensor>& arguments, std::string& note) = 0;

  // Makes `recorder` the calling thread's until the end of the scope; scopes
  // nest. A method that runs for a peer starts without one.
  class Scope {
   public:
    explicit Scope(CallRecorder* recorder);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallRecorder* previous_;
  };

  // The calling thread's recorder, or null.
  static CallRecorder* Current();
};

// The callee's side of one recorded call.
class ServedRecord {
 public:
  virtual ~ServedRecord() = default;

  // Around the method, on the thread that runs it: the place to set and reset
  // thread-local state (a CallRecorder::Scope, for instance).
  // AfterMethod comes before the reply, also if the method throws.
  virtual void BeforeMethod() {}
  virtual void AfterMethod() {}

  // When the result is there: for a method that returns a Future on the thread
  // that resolves it. Not called if the method throws.
  virtual std::string OnReply(std::vector<at::Tensor>& results) = 0;
};

// Sees incoming calls that carry a note (AgentOptions::call_receiver).
class CallReceiver {
 public:
  virtual ~CallReceiver() = default;

  // Threads: the one that will run the method, before it. An exception becomes
  // the reply. May return null: the reply carries no note.
  virtual std::unique_ptr<ServedRecord> OnRequest(
      const Peer& caller, std::string_view method, std::string_view note,
      std::vector<at::Tensor>& arguments) = 0;
};

}  // namespace disttrain::rpc
