// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that a program of one's own needs: find_package(disttrain), link
// disttrain::disttrain, include this.
#include "worker/programs/main.h"
#include "worker/programs/parameters.h"
#include "worker/programs/program.h"
#include "worker/rpc/rpc.h"
