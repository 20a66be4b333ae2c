// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "fmt/format.h"

namespace disttrain::transport {
namespace {

IoResult FromErrno(int error, const char* what) {
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) {
    return {IoResult::Kind::kWouldBlock, 0, absl::OkStatus()};
  }
  return {IoResult::Kind::kError, 0,
          absl::UnavailableError(fmt::format(
              "{}: {}", what, std::generic_category().message(error)))};
}

msghdr Header(absl::Span<const iovec> parts) {
  msghdr header{};
  // sendmsg and recvmsg do not write through it.
  header.msg_iov = const_cast<iovec*>(parts.data());
  header.msg_iovlen = parts.size();
  return header;
}

}  // namespace

IoResult PlainStream::Read(absl::Span<const iovec> into) {
  msghdr header = Header(into);
  const ssize_t bytes = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
  if (bytes < 0) return FromErrno(errno, "reading");
  if (bytes == 0) return {IoResult::Kind::kEnd, 0, absl::OkStatus()};
  return {IoResult::Kind::kDone, static_cast<size_t>(bytes), absl::OkStatus()};
}

IoResult PlainStream::Write(absl::Span<const iovec> from) {
  const msghdr header = Header(from);
  // Without the flag a lost peer would be a signal.
  const ssize_t bytes = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
  if (bytes < 0) return FromErrno(errno, "writing");
  return {IoResult::Kind::kDone, static_cast<size_t>(bytes), absl::OkStatus()};
}

void PlainStream::EndWriting() { ::shutdown(fd_.get(), SHUT_WR); }

void PlainStream::Shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace disttrain::transport
