// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/api/field_error.h"
#include "controller/api/job.h"

namespace disttrain {

// Both ends included.
struct IntRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int32_t>::max();
};

// Rule for a string: `valid`, or the message says it "must be <expected>".
struct StringRule {
  std::function<bool(const std::string&)> valid;
  std::string expected;
};

// "\"two\" (string)": a value and its type for a message, cut at 80 characters.
std::string Shown(const Json& value);

// "a.b is 0, must be at least 1".
FieldError MustBe(const std::string& path, const Json& value,
                  const std::string& expected,
                  const std::string& reason = kInvalidSpec);

// Reads the fields of one JSON object and remembers which it was asked for.
//
// A field that is absent or null leaves the target as it is. Every mistake is
// added to `errors` with its path, and reading goes on. Done() reports the
// fields that nobody asked for.
class ObjectReader {
 public:
  // Borrows `object` and `errors`. An `object` that is none is an error, and
  // reads as an empty one.
  ObjectReader(const Json& object, std::string path,
               std::vector<FieldError>& errors);

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& key) const { return Join(path_, key); }

  // The value; nullptr if absent or null.
  const Json* Find(const std::string& key);

  // Marks a field as known that is not ours to read.
  void Ignore(const std::string& key) { Find(key); }

  // An error if the field is absent or null, unless there was no object to look
  // into. Returns whether it is there.
  bool Require(const std::string& key);

  void Read(const std::string& key, bool& target);
  void Read(const std::string& key, int& target, IntRange range);
  void Read(const std::string& key, int64_t& target, IntRange range);
  void Read(const std::string& key, std::string& target);
  void Read(const std::string& key, std::string& target,
            const StringRule& rule);
  void Read(const std::string& key, std::map<std::string, std::string>& target);

  template <class Int>
  void Read(const std::string& key, std::optional<Int>& target,
            IntRange range) {
    Int value{};
    const size_t before = errors_->size();
    if (Find(key) == nullptr) return;
    Read(key, value, range);
    if (errors_->size() == before) target = value;
  }

  // A string that is one of `choices`.
  void ReadChoice(const std::string& key, std::string& target,
                  const std::vector<std::string>& choices);

  // The same, translated.
  template <class T>
  void ReadChoice(const std::string& key, T& target,
                  const std::vector<std::pair<std::string, T>>& choices) {
    std::vector<std::string> names;
    names.reserve(choices.size());
    for (const auto& [name, value] : choices) names.push_back(name);
    std::string chosen;
    ReadChoice(key, chosen, names);
    for (const auto& [name, value] : choices) {
      if (name == chosen) target = value;
    }
  }

  // An object of any shape, taken as it is.
  void ReadObject(const std::string& key, Json& target);

  // Calls `read` with a reader of the field, if it is there, and ends with its
  // Done().
  void Read(const std::string& key,
            const std::function<void(ObjectReader&)>& read);

  // Calls `read` for each element of a list of at most `max_size`.
  void ReadList(const std::string& key, size_t max_size,
                const std::function<void(const Json& element,
                                         const std::string& path)>& read);

  // A list of strings.
  void Read(const std::string& key, std::vector<std::string>& target,
            size_t max_size, const StringRule& rule);

  // Reports every unknown field, with the one that was probably meant.
  void Done();

  void Add(FieldError error) { errors_->push_back(std::move(error)); }
  std::vector<FieldError>& errors() { return *errors_; }

 private:
  const Json* object_;
  bool is_object_;
  std::string path_;
  std::vector<FieldError>* errors_;
  std::vector<std::string> known_;
};

}  // namespace disttrain
