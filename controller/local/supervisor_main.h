// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

// The process that owns the ranks of one local run.
namespace disttrain {

// argv[1] of a supervisor process. Not for people.
inline constexpr char kSuperviseArgument[] = "__supervise";

// The first thing that main of every program that starts a Supervisor calls:
// if this process was started as one ("<program> __supervise <grace ms>
// [scratch folder]", socket at descriptor 3), supervises and gives the exit
// status. Absent: this process is something else.
//
// The supervisor starts processes for the launcher and ends them all, with
// everything they started, when the launcher closes the socket or dies: SIGTERM
// to each process group, SIGKILL after the grace, until no descendant is left.
// The scratch folder is removed at the end. It is a child subreaper, so that a
// grandchild whose parent died is its own to kill.
// Threads: none besides the calling one, ever.
std::optional<int> RunIfSupervisor(int argc, char** argv);

}  // namespace disttrain
