// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace disttrain {

// What a worker's exit code tells the restart policy. Any other code, and death
// by a signal, is a counted restart.
enum class ExitCode : int {
  kDone = 0,
  kException = 1,  // the program threw: counted restart
  kUsage = 64,     // command line: no restart
  kData = 65,      // checkpoint or input data: no restart
  kBug = 70,       // a broken invariant of ours: counted restart
  kPeerLost =
      75,  // a peer or the network was lost, or told to stop: free restart
  kConfig = 78,  // environment, parameters: no restart
};

}  // namespace disttrain
