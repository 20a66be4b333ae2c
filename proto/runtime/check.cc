// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/check.h"

#include <cstdio>
#include <cstdlib>

#include "proto/contract/exit_code.h"

namespace disttrain {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s (a bug of disttrain)\n", file,
               line, condition);
  std::_Exit(static_cast<int>(ExitCode::kBug));
}

}  // namespace disttrain
