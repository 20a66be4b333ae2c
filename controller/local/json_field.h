// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "controller/api/job.h"

// Reading templates that people wrote: what is missing or of another type is
// the fallback.
namespace disttrain {

inline std::string StringField(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

inline int IntField(const Json& object, const char* key, int fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>()
                                                             : fallback;
}

}  // namespace disttrain
