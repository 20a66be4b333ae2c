// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

// Files for the tests of controller/cli, in a folder of the test's own.
namespace disttrain {

class TestFolder {
 public:
  TestFolder() {
    std::string name = testing::TempDir() + "dtj-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }

  // The path of a new file.
  std::string Write(const std::string& name, const std::string& text) const {
    std::string path = path_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  std::string WriteScript(const std::string& name,
                          const std::string& text) const {
    std::string path = Write(name, "#!/bin/sh\n" + text);
    chmod(path.c_str(), 0700);
    return path;
  }

 private:
  std::string path_;
};

// What a worker with the program reinforce says to --list-programs.
inline constexpr char kCatalog[] = R"({"programs": [
  {"name": "reinforce", "meaning": "CartPole", "driver": "agent",
   "roles": [{"name": "agent", "meaning": "", "maxReplicas": 1,
              "replaceable": false},
             {"name": "observer", "meaning": "", "replaceable": true}],
   "parameters": [
     {"name": "gamma", "type": "number", "default": 0.99, "meaning": "",
      "minimum": 0, "maximum": 1},
     {"name": "seed", "type": "integer", "default": 543, "meaning": ""},
     {"name": "learning_rate", "type": "number", "default": 0.01,
      "exclusiveMinimum": 0},
     {"name": "episodes", "type": "integer", "default": 1500, "minimum": 1},
     {"name": "require_solved", "type": "boolean", "default": false},
     {"name": "device", "type": "string", "default": "cpu"}]}]})";

// A worker that has nothing but that catalog.
inline std::string FakeWorker(const TestFolder& folder) {
  return folder.WriteScript(
      "worker", std::string("[ \"$1\" = --list-programs ] || exit 64\n") +
                    "cat <<'EOF'\n" + kCatalog + "\nEOF\n");
}

}  // namespace disttrain
