// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "controller/cli/commands.h"
#include "controller/local/supervisor_main.h"

int main(int argc, char** argv) {
  if (const auto exit_code = disttrain::RunIfSupervisor(argc, argv)) {
    return *exit_code;
  }
  disttrain::Streams streams;
  const std::vector<std::string> args(argv + 1, argv + argc);
  const int code = disttrain::Dispatch(args, streams);
  streams.out.flush();
  if (!streams.out && code == 0) {
    streams.err << "dtj: cannot write to standard output\n";
    return 1;
  }
  return code;
}
