// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/programs/program.h"

namespace disttrain {

// CartPole-v1 by REINFORCE, as in PyTorch's tutorial "Getting started with the
// distributed RPC framework": one agent that learns, observers that play.
// Throws std::runtime_error if it is not solved in time (require_solved).
void Reinforce(Program& program);

// Its name, roles, parameters and what its processes serve.
NamedProgram ReinforceProgram();

}  // namespace disttrain
