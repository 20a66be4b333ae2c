// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "controller/api/field_error.h"
#include "controller/api/job.h"
#include "controller/api/parse_job.h"

namespace disttrain {

inline constexpr size_t kMaxJobName = 40;
inline constexpr size_t kMaxRoleName = 12;
inline constexpr size_t kMaxRoles = 32;
inline constexpr int kMaxReplicas = 9999;
inline constexpr int kMaxProcessesPerPod = 128;
// Processes of one job; the roster of more would not fit one message.
inline constexpr int kMaxWorldSize = 65536;
inline constexpr size_t kMaxParametersSize = size_t{64} << 10;
inline constexpr size_t kMaxRules = 20;
inline constexpr size_t kMaxMessagePattern = 256;

// The metrics that spec.successPolicy.metric can watch.
const std::vector<std::string>& TargetMetrics();

// -?[0-9]+(.[0-9]+)?, at most 32 characters.
bool IsDecimal(const std::string& text);

// The rules between fields and inside of pod templates, on a job whose fields
// were read one by one (parse_job). Empty: valid. Pure.
std::vector<FieldError> ValidateJob(const Job& job,
                                    const AdmissionOptions& options = {});

// What may not change between two versions of a job: managedBy never; roles
// (names, order, number, fixed sizes) and the queue only while one of the two
// is suspended. Pure.
std::vector<FieldError> ValidateUpdate(const JobSpec& before,
                                       const JobSpec& after);

// What the resource can say but this version does not act on: each use is
// refused by name rather than ignored. Reason NotSupported. Pure.
std::vector<FieldError> UnsupportedFields(const JobSpec& spec);

// The same as a status; OK if everything is acted on.
absl::Status RefuseUnsupported(const JobSpec& spec);

}  // namespace disttrain
