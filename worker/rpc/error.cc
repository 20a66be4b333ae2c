// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/error.h"

#include <exception>

#include "c10/util/Exception.h"
#include "fmt/format.h"

namespace disttrain::rpc {
namespace {

std::string Text(const CallSite& site, const std::string& detail) {
  return fmt::format("{}: {}: {} (after {:.2f} s)", Describe(site.peer),
                     site.method, detail, absl::ToDoubleSeconds(site.elapsed));
}

}  // namespace

std::string Describe(const Peer& peer) {
  return fmt::format("{} {} (rank {}, pod {})", peer.role, peer.role_index,
                     peer.rank, peer.pod);
}

std::string_view Name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "ok";
    case ErrorCode::kRemoteException:
      return "remote_exception";
    case ErrorCode::kUnknownMethod:
      return "unknown_method";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kReferenceLost:
      return "reference_lost";
    case ErrorCode::kShuttingDown:
      return "shutting_down";
    case ErrorCode::kPeerLost:
      return "peer_lost";
    case ErrorCode::kOverloaded:
      return "overloaded";
  }
  return "unknown";
}

Error::Error(ErrorCode code, const CallSite& site, const std::string& detail)
    : std::runtime_error(Text(site, detail)),
      code_(code),
      site_(site),
      detail_(detail) {}

namespace internal {

std::exception_ptr MakeError(ErrorCode code, const CallSite& site,
                             const std::string& detail, ErrorCode cause) {
  switch (code) {
    case ErrorCode::kUnknownMethod:
      return std::make_exception_ptr(UnknownMethod(site, detail));
    case ErrorCode::kInvalidArgument:
      return std::make_exception_ptr(InvalidArgument(site, detail));
    case ErrorCode::kDeadlineExceeded:
      return std::make_exception_ptr(DeadlineExceeded(site, detail));
    case ErrorCode::kCancelled:
      return std::make_exception_ptr(Cancelled(site, detail));
    case ErrorCode::kReferenceLost:
      return std::make_exception_ptr(ReferenceLost(site, detail));
    case ErrorCode::kShuttingDown:
      return std::make_exception_ptr(ShuttingDown(site, detail));
    case ErrorCode::kPeerLost:
      return std::make_exception_ptr(PeerLost(site, detail));
    case ErrorCode::kOverloaded:
      return std::make_exception_ptr(Overloaded(site, detail));
    case ErrorCode::kOk:
    case ErrorCode::kRemoteException:
      break;
  }
  return std::make_exception_ptr(RemoteException(site, detail, cause));
}

std::string MessageOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

ErrorCode CodeOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  } catch (...) {
    return ErrorCode::kRemoteException;
  }
}

}  // namespace internal
}  // namespace disttrain::rpc
