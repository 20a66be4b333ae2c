// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/outcome.h"

#include "c10/util/Exception.h"
#include "worker/programs/program.h"
#include "worker/rpc/error.h"

namespace disttrain {
namespace {

ProgramThrew Thrown(ExitCode code, std::string cause) {
  ProgramThrew result;
  result.code = code;
  result.cause = std::move(cause);
  return result;
}

// How calls end on a peer that leaves, or that has lost a third one.
bool IsBrokenOff(rpc::ErrorCode code) {
  return code == rpc::ErrorCode::kCancelled ||
         code == rpc::ErrorCode::kPeerLost ||
         code == rpc::ErrorCode::kShuttingDown;
}

}  // namespace

ProgramThrew OutcomeOf(const std::exception_ptr& error) {
  ProgramThrew result;
  try {
    std::rethrow_exception(error);
  } catch (const rpc::PeerLost& lost) {
    result = Thrown(ExitCode::kPeerLost, lost.what());
    result.peer_lost = true;
    result.lost_rank = lost.peer().rank;
  } catch (const rpc::RemoteException& remote) {
    result = Thrown(ExitCode::kException, remote.what());
    result.broken_off = IsBrokenOff(remote.cause());
  } catch (const rpc::Error& broken) {
    result = Thrown(ExitCode::kException, broken.what());
    result.broken_off = IsBrokenOff(broken.code());
  } catch (const ConfigError& config) {
    result = Thrown(ExitCode::kConfig, config.what());
  } catch (const DataError& data) {
    result = Thrown(ExitCode::kData, data.what());
  } catch (const c10::Error& torch) {
    result = Thrown(ExitCode::kException, torch.what_without_backtrace());
  } catch (const std::exception& other) {
    result = Thrown(ExitCode::kException, other.what());
  } catch (...) {
    result = Thrown(ExitCode::kException,
                    "the program threw something that is no std::exception");
  }
  return result;
}

}  // namespace disttrain
