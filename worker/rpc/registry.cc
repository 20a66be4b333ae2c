// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/registry.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "worker/rpc/arguments.h"
#include "worker/rpc/value.h"

namespace disttrain::rpc {
namespace internal {

const MethodEntry* ClassEntry::Find(std::string_view method) const {
  for (const MethodEntry& entry : methods) {
    if (entry.name == method) return &entry;
  }
  return nullptr;
}

std::string ClassEntry::ListMethods() const {
  if (methods.empty()) return fmt::format("{} has no methods", name);
  std::vector<std::string_view> names;
  names.reserve(methods.size());
  for (const MethodEntry& entry : methods) names.push_back(entry.name);
  return fmt::format("{} has {}", name, fmt::join(names, ", "));
}

void ThrowWrongCount(size_t expected, size_t got) {
  throw ValueError(fmt::format("expected {} arguments, got {}", expected, got));
}

void ThrowArgument(size_t index, const std::string& what) {
  throw ValueError(fmt::format("argument {}: {}", index + 1, what));
}

void ThrowNoConstructor(std::string_view class_name, size_t count) {
  throw ValueError(
      fmt::format("{} has no constructor (or several) of {} arguments that can "
                  "travel",
                  class_name, count));
}

}  // namespace internal

const internal::ClassEntry* Registry::Find(std::string_view class_name) const {
  for (const internal::ClassEntry* entry : classes_) {
    if (entry->name == class_name) return entry;
  }
  return nullptr;
}

std::string Registry::ListClasses() const {
  if (classes_.empty()) return "none";
  std::vector<std::string_view> names;
  names.reserve(classes_.size());
  for (const internal::ClassEntry* entry : classes_) {
    names.push_back(entry->name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Registry Registry::And(const Registry& other) const {
  std::vector<const internal::ClassEntry*> classes = classes_;
  for (const internal::ClassEntry* entry : other.classes_) {
    if (Find(entry->name) == nullptr) classes.push_back(entry);
  }
  return Registry(std::move(classes));
}

}  // namespace disttrain::rpc
