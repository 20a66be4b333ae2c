// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/http_server.h"
#include "proto/runtime/log.h"
#include "worker/telemetry/metrics.h"

namespace disttrain {

// What a worker shows over HTTP: /metrics, /healthz (the process lives),
// /readyz (all ranks have met and it is not leaving), /debug/calls (remote
// calls in flight, as JSON).
//
// Threads: thread-safe.
class StatusPages {
 public:
  // Figures of the RPC layer while there is one.
  struct Source {
    std::function<RpcFigures()> figures;
    std::function<std::string()> calls;  // JSON
  };

  // Serves on `port` (0: the kernel chooses) of all addresses. Borrows
  // `metrics`. Errors: HttpServer::Start's.
  static absl::StatusOr<std::unique_ptr<StatusPages>> Start(int port,
                                                            Metrics& metrics,
                                                            const Log& log);

  int port() const { return server_->port(); }

  // From here on ready; null members: no longer, and the earlier source is not
  // used any more.
  void SetSource(Source source);

 private:
  explicit StatusPages(Metrics& metrics) : metrics_(metrics) {}
  HttpResponse MetricsPage();
  HttpResponse ReadyPage();
  HttpResponse CallsPage();

  Metrics& metrics_;
  absl::Mutex mu_;
  Source source_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;  // last: its handlers use the others
};

}  // namespace disttrain
