// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iostream>

namespace disttrain {

// Where a command reads and writes, so that tests can look over its shoulder.
// Borrowed: the streams outlive the command.
struct Streams {
  std::istream& in = std::cin;
  std::ostream& out = std::cout;
  std::ostream& err = std::cerr;
};

}  // namespace disttrain
