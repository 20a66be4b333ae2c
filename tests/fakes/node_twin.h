// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/kube/clock.h"
#include "controller/local/memory_api.h"

namespace disttrain {

// How a test lets a pod's main container end.
struct PodEnd {
  int exit_code = 0;
  int signal = 0;
  std::string reason = {};   // of the container; "": Completed or Error
  std::string message = {};  // the termination message
};

// Plays scheduler and kubelets: binds pods and writes the statuses that a
// kubelet would write. A pod does only what the test says.
//
// Every call fails the test if the API refuses it.
class NodeTwin {
 public:
  // Borrows both.
  NodeTwin(MemoryApi& api, const Clock& clock) : api_(api), clock_(clock) {}

  // Names of all pods, sorted; of those being deleted too.
  std::vector<std::string> Pods() const;
  // True if there is such a pod and it is not being deleted.
  bool Has(const std::string& pod) const;
  Json Get(const std::string& pod) const;

  // Binds the pod to "node-<pod>" and lets its main container run, ready.
  void Run(const std::string& pod);
  // All that are pending and not being deleted.
  void RunAll();
  void End(const std::string& pod, const PodEnd& end);
  // status.phase Failed with a reason and no container statuses: evicted, the
  // node was shut down, refused by the kubelet.
  void Reject(const std::string& pod, const std::string& reason,
              const std::string& message);
  void SetCondition(const std::string& pod, const std::string& type,
                    const std::string& reason, const std::string& message);
  // The container cannot be made: state.waiting with this reason.
  void Hold(const std::string& pod, const std::string& reason,
            const std::string& message);

  // kubectl delete: with the pod's grace.
  void Delete(const std::string& pod);
  // The kubelet has ended it: gone at once.
  void Vanish(const std::string& pod);
  // Lets all pods that are being deleted vanish.
  void FinishDeletions();

 private:
  void Write(Json pod);
  Json ContainerStatus(const Json& pod, const Json& state) const;
  std::string Timestamp() const;

  MemoryApi& api_;
  const Clock& clock_;
};

}  // namespace disttrain
