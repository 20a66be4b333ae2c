// SPDX-License-Identifier: Apache-2.0
#include "controller/api/validate_template.h"

#include <algorithm>
#include <set>

#include "controller/api/closest_name.h"
#include "controller/api/json_reader.h"
#include "controller/api/names.h"
#include "controller/api/template_fields.h"
#include "controller/api/validate_job.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr size_t kMaxContainers = 20;

// One role's template under examination.
class TemplateCheck {
 public:
  TemplateCheck(const JobSpec& spec, size_t index,
                const AdmissionOptions& options,
                std::vector<FieldError>& errors)
      : spec_(spec), options_(options), errors_(errors) {
    role_ = &spec.roles[index];
    path_ = Join("spec.roles", index) + ".template";
  }

  void Run() {
    CheckKnown(role_->pod_template, path_, PodTemplateFields());
    CheckMetadata();
    const Json* pod = Child(role_->pod_template, "spec");
    if (pod == nullptr) return CheckMainContainer(nullptr);
    const std::string path = path_ + ".spec";
    if (!Shape(*pod, path, Json::value_t::object)) return;
    CheckKnown(*pod, path, PodSpecFields());
    CheckOwnFields(*pod, path);
    CheckHostAccess(*pod, path);
    std::set<std::string> names;
    CheckContainers(*pod, path, "containers", names);
    CheckContainers(*pod, path, "initContainers", names);
    CheckMainContainer(Child(*pod, "containers"));
  }

 private:
  void Add(const std::string& path, const std::string& rest,
           const std::string& reason = kInvalidPodTemplate) {
    errors_.push_back({path, path + rest, reason});
  }

  void Wrong(const std::string& path, const Json& value,
             const std::string& expected) {
    errors_.push_back(MustBe(path, value, expected, kInvalidPodTemplate));
  }

  // nullptr if absent or null.
  static const Json* Child(const Json& object, const std::string& key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  static bool IsTrue(const Json& object, const std::string& key) {
    const Json* value = Child(object, key);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }

  // Whether `value` has that type; an error if not.
  bool Shape(const Json& value, const std::string& path, Json::value_t type) {
    if (value.type() == type) return true;
    Wrong(path, value,
          type == Json::value_t::object  ? "an object"
          : type == Json::value_t::array ? "a list"
                                         : "a string");
    return false;
  }

  // New fields come with new versions of Kubernetes, so an unknown one is an
  // error only if it looks like a typing error.
  void CheckKnown(const Json& object, const std::string& path,
                  const std::vector<std::string>& known) {
    for (const auto& [name, value] : object.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string hint = DidYouMean(name, known);
      if (!hint.empty()) Add(Join(path, name), " is an unknown field" + hint);
    }
  }

  void CheckMetadata() {
    const Json* metadata = Child(role_->pod_template, "metadata");
    if (metadata == nullptr) return;
    const std::string path = path_ + ".metadata";
    if (!Shape(*metadata, path, Json::value_t::object)) return;
    CheckKnown(*metadata, path, {"labels", "annotations"});
    for (const char* field : {"labels", "annotations"}) {
      const Json* entries = Child(*metadata, field);
      if (entries == nullptr) continue;
      const std::string entries_path = Join(path, field);
      if (!Shape(*entries, entries_path, Json::value_t::object)) continue;
      for (const auto& [key, value] : entries->items()) {
        const std::string entry = Join(entries_path, key);
        Shape(value, entry, Json::value_t::string);
        if (key.starts_with("disttrain.dev/")) {
          Add(entry, " is set by disttrain itself; choose another prefix");
        }
      }
    }
  }

  void CheckOwnFields(const Json& pod, const std::string& path) {
    const Json* restart = Child(pod, "restartPolicy");
    if (restart != nullptr && *restart != "Never") {
      Wrong(path + ".restartPolicy", *restart,
            "Never or absent: restarts are spec.failurePolicy's");
    }
    for (const char* field : {"hostname", "subdomain"}) {
      if (Child(pod, field) != nullptr) {
        Add(Join(path, field), " is set by disttrain itself; leave it out");
      }
    }
  }

  void Forbid(const std::string& path) {
    if (options_.allow_host_access) return;
    Add(path, " gives access to the host, which this installation refuses");
  }

  void CheckHostAccess(const Json& pod, const std::string& path) {
    for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
      if (IsTrue(pod, field)) Forbid(Join(path, field));
    }
    const Json* volumes = Child(pod, "volumes");
    if (volumes == nullptr) return;
    if (!Shape(*volumes, path + ".volumes", Json::value_t::array)) return;
    for (size_t i = 0; i < volumes->size(); ++i) {
      if (Child((*volumes)[i], "hostPath") != nullptr) {
        Forbid(Join(path + ".volumes", i) + ".hostPath");
      }
    }
  }

  void CheckContainers(const Json& pod, const std::string& pod_path,
                       const std::string& field, std::set<std::string>& names) {
    const Json* containers = Child(pod, field);
    if (containers == nullptr) return;
    const std::string path = Join(pod_path, field);
    if (!Shape(*containers, path, Json::value_t::array)) return;
    if (containers->size() > kMaxContainers ||
        (containers->empty() && field == "containers")) {
      Add(path, fmt::format(" has {} elements, must have 1 to {}",
                            containers->size(), kMaxContainers));
      return;
    }
    for (size_t i = 0; i < containers->size(); ++i) {
      CheckContainer((*containers)[i], Join(path, i), names);
    }
  }

  void CheckContainer(const Json& container, const std::string& path,
                      std::set<std::string>& names) {
    if (!Shape(container, path, Json::value_t::object)) return;
    CheckKnown(container, path, ContainerFields());
    const Json* name = Child(container, "name");
    if (name == nullptr) {
      Add(path + ".name", " is missing");
    } else if (!name->is_string() ||
               !IsRfc1123Label(name->get<std::string>())) {
      Wrong(path + ".name", *name,
            "a lower-case label of at most 63 characters");
    } else if (!names.insert(name->get<std::string>()).second) {
      Wrong(path + ".name", *name, "unique within the pod");
    }
    const Json* context = Child(container, "securityContext");
    if (context != nullptr && IsTrue(*context, "privileged")) {
      Forbid(path + ".securityContext.privileged");
    }
    CheckEnvironment(container, path);
  }

  void CheckEnvironment(const Json& container, const std::string& path) {
    const Json* variables = Child(container, "env");
    if (variables == nullptr) return;
    if (!Shape(*variables, path + ".env", Json::value_t::array)) return;
    for (size_t i = 0; i < variables->size(); ++i) {
      const std::string element = Join(path + ".env", i);
      const Json& variable = (*variables)[i];
      if (!Shape(variable, element, Json::value_t::object)) continue;
      const Json* name = Child(variable, "name");
      if (name == nullptr) {
        Add(element + ".name", " is missing");
        continue;
      }
      if (!Shape(*name, element + ".name", Json::value_t::string)) continue;
      if (IsReservedVariable(name->get<std::string>())) {
        Add(element + ".name",
            fmt::format(" is \"{}\", a variable that disttrain sets itself; "
                        "leave it out",
                        name->get<std::string>()),
            kReservedVariable);
      }
      if (const Json* value = Child(variable, "value")) {
        Shape(*value, element + ".value", Json::value_t::string);
      }
    }
  }

  // `containers`: nullptr if the template has none, so that the main container
  // is the chart's.
  void CheckMainContainer(const Json* containers) {
    const std::string& name = spec_.main_container;
    if (!name.empty() && containers != nullptr &&
        MainContainer(*role_, name) == nullptr) {
      std::vector<std::string> names;
      for (const Json& container : *containers) {
        const Json* own = Child(container, "name");
        if (own != nullptr && own->is_string()) names.push_back(*own);
      }
      errors_.push_back({"spec.mainContainer",
                         fmt::format("spec.mainContainer is \"{}\", must be "
                                     "the name of a container of {}{}",
                                     name, path_, DidYouMean(name, names))});
      return;
    }
    const Json* main = MainContainer(*role_, name);
    CheckGpuLimit(main);
    if (!spec_.program.empty()) return;
    if (main == nullptr || (Child(*main, "command") == nullptr &&
                            Child(*main, "image") == nullptr)) {
      errors_.push_back(
          {"spec.program",
           fmt::format("spec.program is missing, and the main container of {} "
                       "has neither image nor command that could run instead",
                       path_)});
    }
  }

  // The path of one of the template's own containers.
  std::string PathOf(const Json* container) const {
    const Json& containers = role_->pod_template["spec"]["containers"];
    size_t i = 0;
    while (&containers[i] != container) ++i;
    return Join(path_ + ".spec.containers", i);
  }

  void CheckGpuLimit(const Json* container) {
    if (container == nullptr) return;
    const Json* resources = Child(*container, "resources");
    if (resources == nullptr) return;
    const Json* limits = Child(*resources, "limits");
    if (limits == nullptr) return;
    const Json* gpus = Child(*limits, "nvidia.com/gpu");
    if (gpus == nullptr) return;
    const std::string text =
        gpus->is_string() ? gpus->get<std::string>() : gpus->dump();
    if (text.empty() || text.size() > 3 ||
        text.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(text) > kMaxProcessesPerPod) {
      Wrong(Join(PathOf(container) + ".resources.limits", "nvidia.com/gpu"),
            *gpus,
            fmt::format("a whole number of at most {}", kMaxProcessesPerPod));
    }
  }

  const JobSpec& spec_;
  const AdmissionOptions& options_;
  std::vector<FieldError>& errors_;
  const Role* role_;
  std::string path_;
};

}  // namespace

void ValidateTemplate(const JobSpec& spec, size_t index,
                      const AdmissionOptions& options,
                      std::vector<FieldError>& errors) {
  TemplateCheck(spec, index, options, errors).Run();
}

}  // namespace disttrain
