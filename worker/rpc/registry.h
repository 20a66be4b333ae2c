// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

namespace disttrain::rpc {

namespace internal {
class Arguments;
class ServedCall;

// One method that peers may call.
struct MethodEntry {
  std::string_view label;  // "Observer.RunEpisode"
  std::string_view name;   // "RunEpisode"
  std::string signature;  // "Observer.RunEpisode(RRef<Agent>, int64) -> double"
  // Reads the arguments, calls the method, answers. Throws what it throws.
  void (*run)(void* object, const Arguments& arguments,
              ServedCall& call) = nullptr;
};

// One class that peers may create and call.
struct ClassEntry {
  std::string_view name;
  std::type_index type = typeid(void);
  std::vector<MethodEntry> methods;
  // Throws ValueError if no constructor takes the arguments.
  std::shared_ptr<void> (*create)(const Arguments& arguments) = nullptr;

  // Null if there is no such method.
  const MethodEntry* Find(std::string_view method) const;
  // "Observer has RunEpisode, Reset"
  std::string ListMethods() const;
};

}  // namespace internal

// What a process serves: see Remotes<...>() in remote.h. A value; there is no
// registry that fills itself.
class Registry {
 public:
  Registry() = default;
  explicit Registry(std::vector<const internal::ClassEntry*> classes)
      : classes_(std::move(classes)) {}

  // Null if there is no such class.
  const internal::ClassEntry* Find(std::string_view class_name) const;
  // "Agent, Observer", or "none".
  std::string ListClasses() const;
  // Both lists in one.
  Registry And(const Registry& other) const;

 private:
  std::vector<const internal::ClassEntry*>
      classes_;  // constants of the program
};

}  // namespace disttrain::rpc
