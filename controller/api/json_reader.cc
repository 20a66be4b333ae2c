// SPDX-License-Identifier: Apache-2.0
#include "controller/api/json_reader.h"

#include <algorithm>

#include "controller/api/closest_name.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace disttrain {
namespace {

const char* TypeName(const Json& value) {
  return value.is_array() ? "list" : value.type_name();
}

std::string Cut(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

const Json& EmptyObject() {
  static const Json kEmpty = Json::object();
  return kEmpty;
}

// Absent if it is no integer, or outside of `range`.
std::optional<int64_t> IntegerIn(const Json& value, IntRange range) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(range.max)) {
    return std::nullopt;
  }
  const auto number = value.get<int64_t>();
  if (number < range.min || number > range.max) return std::nullopt;
  return number;
}

}  // namespace

std::string Shown(const Json& value) {
  if (value.is_null()) return "null";
  return fmt::format("{} ({})", Cut(value), TypeName(value));
}

FieldError MustBe(const std::string& path, const Json& value,
                  const std::string& expected, const std::string& reason) {
  return {path, fmt::format("{} is {}, must be {}", path, Cut(value), expected),
          reason};
}

ObjectReader::ObjectReader(const Json& object, std::string path,
                           std::vector<FieldError>& errors)
    : object_(&object),
      is_object_(object.is_object()),
      path_(std::move(path)),
      errors_(&errors) {
  if (is_object_) return;
  object_ = &EmptyObject();
  const std::string what = path_.empty() ? "the manifest" : path_;
  errors.push_back(
      {path_, fmt::format("{} is {}, must be an object", what, Shown(object))});
}

const Json* ObjectReader::Find(const std::string& key) {
  known_.push_back(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool ObjectReader::Require(const std::string& key) {
  if (Find(key) != nullptr) return true;
  if (is_object_) Add({PathOf(key), fmt::format("{} is missing", PathOf(key))});
  return false;
}

void ObjectReader::Read(const std::string& key, bool& target) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (value->is_boolean()) {
    target = value->get<bool>();
    return;
  }
  Add({PathOf(key), fmt::format("{} is {}, must be true or false", PathOf(key),
                                Shown(*value))});
}

void ObjectReader::Read(const std::string& key, int64_t& target,
                        IntRange range) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (const std::optional<int64_t> number = IntegerIn(*value, range)) {
    target = *number;
    return;
  }
  Add({PathOf(key),
       fmt::format("{} is {}, must be an integer in [{}, {}]", PathOf(key),
                   Shown(*value), range.min, range.max)});
}

void ObjectReader::Read(const std::string& key, int& target, IntRange range) {
  range.max = std::min<int64_t>(range.max, std::numeric_limits<int>::max());
  int64_t number = target;
  Read(key, number, range);
  target = static_cast<int>(number);
}

void ObjectReader::Read(const std::string& key, std::string& target) {
  Read(key, target, {[](const std::string&) { return true; }, ""});
}

void ObjectReader::Read(const std::string& key, std::string& target,
                        const StringRule& rule) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_string()) {
    Add({PathOf(key),
         fmt::format("{} is {}, must be a string{}", PathOf(key), Shown(*value),
                     rule.expected.empty() ? "" : ": ") +
             rule.expected});
    return;
  }
  if (!rule.valid(value->get_ref<const std::string&>())) {
    Add(MustBe(PathOf(key), *value, rule.expected));
    return;
  }
  target = value->get<std::string>();
}

void ObjectReader::Read(const std::string& key,
                        std::map<std::string, std::string>& target) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  const ObjectReader entries(*value, PathOf(key), *errors_);
  for (const auto& [name, entry] : entries.object_->items()) {
    if (entry.is_string()) {
      target[name] = entry.get<std::string>();
    } else {
      const std::string path = Join(PathOf(key), name);
      Add({path, fmt::format("{} is {}, must be a string (put it in quotes)",
                             path, Shown(entry))});
    }
  }
}

void ObjectReader::ReadChoice(const std::string& key, std::string& target,
                              const std::vector<std::string>& choices) {
  const std::string list = fmt::format("{}", fmt::join(choices, ", "));
  const size_t before = errors_->size();
  std::string chosen;
  Read(key, chosen,
       {[&](const std::string& text) {
          return std::find(choices.begin(), choices.end(), text) !=
                 choices.end();
        },
        (choices.size() == 1 ? "" : "one of ") + list});
  if (errors_->size() > before) {
    const Json* value = Find(key);
    if (value != nullptr && value->is_string()) {
      errors_->back().message +=
          DidYouMean(value->get_ref<const std::string&>(), choices);
    }
  } else if (!chosen.empty()) {
    target = chosen;
  }
}

void ObjectReader::ReadObject(const std::string& key, Json& target) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  const size_t before = errors_->size();
  const ObjectReader check(*value, PathOf(key), *errors_);
  if (errors_->size() == before) target = *value;
}

void ObjectReader::Read(const std::string& key,
                        const std::function<void(ObjectReader&)>& read) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  ObjectReader reader(*value, PathOf(key), *errors_);
  read(reader);
  reader.Done();
}

void ObjectReader::ReadList(
    const std::string& key, size_t max_size,
    const std::function<void(const Json&, const std::string&)>& read) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_array()) {
    Add({PathOf(key),
         fmt::format("{} is {}, must be a list", PathOf(key), Shown(*value))});
    return;
  }
  if (value->size() > max_size) {
    Add({PathOf(key), fmt::format("{} has {} elements, must have at most {}",
                                  PathOf(key), value->size(), max_size)});
    return;
  }
  for (size_t i = 0; i < value->size(); ++i) {
    read((*value)[i], Join(PathOf(key), i));
  }
}

void ObjectReader::Read(const std::string& key,
                        std::vector<std::string>& target, size_t max_size,
                        const StringRule& rule) {
  ReadList(key, max_size, [&](const Json& element, const std::string& path) {
    if (element.is_string() &&
        rule.valid(element.get_ref<const std::string&>())) {
      target.push_back(element.get<std::string>());
    } else {
      Add({path, fmt::format("{} is {}, must be {}", path, Shown(element),
                             rule.expected)});
    }
  });
}

void ObjectReader::Done() {
  std::sort(known_.begin(), known_.end());
  known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
  for (const auto& [name, value] : object_->items()) {
    if (std::binary_search(known_.begin(), known_.end(), name)) continue;
    std::string hint = DidYouMean(name, known_);
    if (hint.empty()) {
      hint = fmt::format("; known: {}", fmt::join(known_, ", "));
    }
    Add({PathOf(name),
         fmt::format("{} is an unknown field{}", PathOf(name), hint)});
  }
}

}  // namespace disttrain
