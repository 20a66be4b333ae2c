// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/resolver.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <memory>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/transport/socket.h"

namespace disttrain::transport {
namespace {

// Shared with the thread, which may outlive the wish.
struct Lookup {
  const UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  absl::Mutex mu;
  absl::StatusOr<std::vector<SocketAddress>> found ABSL_GUARDED_BY(mu) =
      absl::UnknownError("");
};

void RunLookup(const std::shared_ptr<Lookup>& lookup, const Address& address) {
  ::pthread_setname_np(::pthread_self(), "resolve");
  absl::StatusOr<std::vector<SocketAddress>> found = Resolve(address);
  absl::MutexLock lock(&lookup->mu);
  lookup->found = std::move(found);
  const uint64_t one = 1;
  // Cannot fail: the counter was 0. Nobody may wait for it any more.
  [[maybe_unused]] const ssize_t written =
      ::write(lookup->done.get(), &one, sizeof(one));
}

}  // namespace

absl::StatusOr<std::vector<SocketAddress>> ResolveUntil(const Address& address,
                                                        absl::Time deadline,
                                                        int cancel) {
  if (address.is_unix()) return std::vector{UnixSocketAddress(address)};
  if (auto literal = ResolveLiteral(address); literal.ok()) return literal;
  auto lookup = std::make_shared<Lookup>();
  if (!lookup->done.valid()) return absl::UnavailableError("no descriptors");
  std::thread([lookup, address] { RunLookup(lookup, address); }).detach();
  const absl::Status status =
      Await(lookup->done.get(), POLLIN, deadline, cancel);
  if (absl::IsDeadlineExceeded(status)) {
    return absl::UnavailableError(
        fmt::format("host '{}': the name servers do not answer", address.host));
  }
  RETURN_IF_ERROR(status);
  absl::MutexLock lock(&lookup->mu);
  return lookup->found;
}

}  // namespace disttrain::transport
