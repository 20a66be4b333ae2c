// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

// Looking at processes through /proc.
namespace disttrain {

// Direct children of this process, zombies included. A subreaper's children
// are the ones that it forked and every orphan among their descendants.
std::vector<pid_t> ChildrenOfSelf();

// Its session's id; 0 if it is gone.
pid_t SessionOf(pid_t pid);

// Whether the environment that `pid` was started with has the entry
// "NAME=value". False if it may not be read, or `pid` is gone.
bool HasEnvironmentEntry(pid_t pid, std::string_view entry);

}  // namespace disttrain
