// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/dialer.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/transport/resolver.h"
#include "worker/transport/socket.h"

namespace disttrain::transport {
namespace {

// Reads exactly `size` bytes, so that nothing of the first message is taken.
absl::StatusOr<std::string> ReadExactly(Stream& stream, size_t size,
                                        absl::Time deadline, int cancel) {
  std::string bytes(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const iovec part{bytes.data() + filled, size - filled};
    const IoResult result = stream.Read(absl::MakeConstSpan(&part, 1));
    if (result.kind == IoResult::Kind::kError) return result.error;
    if (result.kind == IoResult::Kind::kEnd) {
      return absl::UnavailableError("closed while greeting");
    }
    filled += result.bytes;
    if (result.kind == IoResult::Kind::kWouldBlock) {
      RETURN_IF_ERROR(Await(stream.fd(), POLLIN, deadline, cancel));
    }
  }
  return bytes;
}

absl::Status WriteAll(Stream& stream, const std::string& bytes,
                      absl::Time deadline, int cancel) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const iovec part{const_cast<char*>(bytes.data()) + sent,
                     bytes.size() - sent};
    const IoResult result = stream.Write(absl::MakeConstSpan(&part, 1));
    if (result.kind == IoResult::Kind::kError) return result.error;
    sent += result.bytes;
    if (result.kind == IoResult::Kind::kWouldBlock) {
      RETURN_IF_ERROR(Await(stream.fd(), POLLOUT, deadline, cancel));
    }
  }
  return absl::OkStatus();
}

// A refusal as an error: only UNAVAILABLE is tried again.
absl::Status Refused(const Refusal& refusal) {
  const std::string text = "refused: " + refusal.text;
  return refusal.kind == Refusal::Kind::kRetry
             ? absl::UnavailableError(text)
             : absl::FailedPreconditionError(text);
}

absl::Status Greet(Stream& stream, const Dial& dial, int cancel) {
  RETURN_IF_ERROR(
      WriteAll(stream, EncodeFrame(FrameType::kHello, EncodeHello(dial.hello)),
               dial.deadline, cancel));
  ASSIGN_OR_RETURN(
      const std::string head,
      ReadExactly(stream, kFrameHeaderBytes, dial.deadline, cancel));
  ASSIGN_OR_RETURN(const FrameHeader frame, DecodeFrameHeader(head));
  if (frame.type != FrameType::kHello && frame.type != FrameType::kRefuse) {
    return absl::DataLossError(
        fmt::format("frame of type {} instead of an answer to the hello",
                    static_cast<int>(frame.type)));
  }
  ASSIGN_OR_RETURN(const std::string payload,
                   ReadExactly(stream, frame.length, dial.deadline, cancel));
  if (frame.type == FrameType::kRefuse) {
    ASSIGN_OR_RETURN(const Refusal refusal, DecodeRefusal(payload));
    return Refused(refusal);
  }
  ASSIGN_OR_RETURN(const Hello answer, DecodeHello(payload));
  if (auto refusal = CheckAnswer(answer, dial.hello)) return Refused(*refusal);
  return absl::OkStatus();
}

absl::Status NotWanted() {
  return absl::CancelledError("the peer's own connection came first");
}

// Any of the addresses, then the greeting.
absl::StatusOr<std::unique_ptr<Stream>> Attempt(const Dial& dial, int cancel) {
  ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses,
                   ResolveUntil(dial.address, dial.deadline, cancel));
  absl::StatusOr<UniqueFd> fd = absl::UnavailableError("no address");
  for (const SocketAddress& address : addresses) {
    fd = Connect(address, dial.deadline, cancel);
    if (fd.ok() || absl::IsCancelled(fd.status())) break;
  }
  if (!fd.ok()) return fd.status();
  auto stream = std::make_unique<PlainStream>(*std::move(fd));
  if (!dial.enter(Link::kGreeting)) return NotWanted();
  RETURN_IF_ERROR(Greet(*stream, dial, cancel));
  return std::unique_ptr<Stream>(std::move(stream));
}

absl::StatusOr<std::unique_ptr<Stream>> Run(const Dial& dial, int cancel) {
  absl::Duration backoff = absl::Milliseconds(2);
  while (dial.enter(Link::kConnecting)) {
    absl::StatusOr<std::unique_ptr<Stream>> stream = Attempt(dial, cancel);
    const absl::Status& status = stream.status();
    if (stream.ok() || absl::IsCancelled(status)) return stream;
    if (!absl::IsUnavailable(status) || absl::Now() + backoff > dial.deadline) {
      return absl::UnavailableError(fmt::format("dialling {}: {}",
                                                dial.address.ToString(),
                                                disttrain::Message(status)));
    }
    const absl::Status waited =
        Await(-1, 0, absl::Now() + backoff, cancel);  // the backoff's timer
    if (absl::IsCancelled(waited)) return absl::Status(waited);
    backoff = std::min(backoff * 2, absl::Milliseconds(200));
  }
  return NotWanted();
}

}  // namespace

Dialer::Dialer() : cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::Status Dialer::Start(Dial dial, Done done) {
  absl::MutexLock lock(&mu_);
  calls_.remove_if([](Call& call) {
    if (call.ended) call.thread.join();
    return call.ended;
  });
  Call& call = calls_.emplace_back();
  try {
    call.thread = std::thread(
        [this, &call, dial = std::move(dial), done = std::move(done)] {
          ::pthread_setname_np(::pthread_self(), "dial");
          done(Run(dial, cancel_.get()));
          absl::MutexLock end(&mu_);
          call.ended = true;
        });
  } catch (const std::system_error& error) {
    calls_.pop_back();
    return absl::UnavailableError(
        fmt::format("no thread to dial on: {}", error.what()));
  }
  return absl::OkStatus();
}

void Dialer::Stop() {
  const uint64_t one = 1;
  if (::write(cancel_.get(), &one, sizeof(one)) != sizeof(one)) return;
  std::list<Call> calls;
  {
    absl::MutexLock lock(&mu_);
    calls.swap(calls_);
  }
  for (Call& call : calls) call.thread.join();
}

}  // namespace disttrain::transport
