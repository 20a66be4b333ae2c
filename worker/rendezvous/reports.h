// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "disttrain/v1/progress.pb.h"

namespace disttrain {

// One rank's latest report.
struct RankReport {
  int rank = 0;
  std::string role;
  v1::Report report;
};

// What the whole job reports, by the rules of Progress.training. `reports` is
// in ascending order of rank. Pure.
v1::Report MergeReports(const std::vector<RankReport>& reports,
                        const std::string& driver_role);

}  // namespace disttrain
