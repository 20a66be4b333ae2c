// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "worker/programs/lifecycle.h"

namespace disttrain {

// What an exception that came out of a program means: its exit code, its text
// (libtorch's without the backtrace), and whether a lost peer is behind it.
ProgramThrew OutcomeOf(const std::exception_ptr& error);

}  // namespace disttrain
