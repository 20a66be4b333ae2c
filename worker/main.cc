// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/main.h"

#include "worker/programs/reinforce/reinforce.h"

// The worker with the programs that come with disttrain. A program of one's own
// has a main function of its own, which may list these beside it.
int main(int argc, char** argv) {
  return disttrain::Main(argc, argv, {disttrain::ReinforceProgram()});
}
