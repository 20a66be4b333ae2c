// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/status_pages.h"

#include <utility>

namespace disttrain {

absl::StatusOr<std::unique_ptr<StatusPages>> StatusPages::Start(
    int port, Metrics& metrics, const Log& log) {
  HttpOptions options;
  options.port = port;
  options.log = log;
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options);
  if (!server.ok()) return server.status();
  std::unique_ptr<StatusPages> pages(new StatusPages(metrics));
  StatusPages* self = pages.get();
  pages->server_ = *std::move(server);
  pages->server_->Route(
      "/metrics", [self](const HttpRequest&) { return self->MetricsPage(); });
  pages->server_->Route("/healthz", [](const HttpRequest&) {
    return HttpResponse{.body = "ok\n"};
  });
  pages->server_->Route(
      "/readyz", [self](const HttpRequest&) { return self->ReadyPage(); });
  pages->server_->Route(
      "/debug/calls", [self](const HttpRequest&) { return self->CallsPage(); });
  return pages;
}

void StatusPages::SetSource(Source source) {
  absl::MutexLock lock(&mu_);
  source_ = std::move(source);
}

HttpResponse StatusPages::MetricsPage() {
  {
    absl::MutexLock lock(&mu_);
    if (source_.figures) metrics_.SetRpcFigures(source_.figures());
  }
  return {.content_type = Metrics::kContentType, .body = metrics_.Serialize()};
}

HttpResponse StatusPages::ReadyPage() {
  absl::MutexLock lock(&mu_);
  if (source_.figures) return {.body = "ok\n"};
  return {.status = 503,
          .body = "not all ranks have met, or this one leaves\n"};
}

HttpResponse StatusPages::CallsPage() {
  absl::MutexLock lock(&mu_);
  return {.content_type = "application/json",
          .body = source_.calls ? source_.calls() : "{}"};
}

}  // namespace disttrain
