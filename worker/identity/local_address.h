// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "worker/identity/identity.h"

namespace disttrain {

// Path of this rank's data socket, beside the rendezvous' socket. A new life of
// a rank has a new one.
std::string DataSocketPath(const Identity& identity);

}  // namespace disttrain
