// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include "nlohmann/json.hpp"

namespace disttrain {

// A recording beside the tests; see the record_*.py of the same name.
inline nlohmann::json Recording(const std::string& name) {
  const std::string path = std::string(DISTTRAIN_RECORDINGS) + "/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  return nlohmann::json::parse(file);
}

}  // namespace disttrain
