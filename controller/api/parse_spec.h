// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller/api/job.h"
#include "controller/api/json_reader.h"

// The parts of spec, each from its own object. Used by parse_job.cc alone.
namespace disttrain {

void ReadRole(ObjectReader& reader, Role& role);
void ReadFailurePolicy(ObjectReader& reader, FailurePolicy& policy);
void ReadSuccessPolicy(ObjectReader& reader, SuccessPolicy& policy);
void ReadDeadlines(ObjectReader& reader, Deadlines& deadlines);
void ReadCleanup(ObjectReader& reader, Cleanup& cleanup);
void ReadScheduling(ObjectReader& reader, Scheduling& scheduling);
void ReadNetwork(ObjectReader& reader, Network& network);
void ReadCheckpoint(ObjectReader& reader, Checkpoint& checkpoint);
void ReadReporting(ObjectReader& reader, Reporting& reporting);

}  // namespace disttrain
