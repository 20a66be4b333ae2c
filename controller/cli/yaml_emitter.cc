// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/yaml_emitter.h"

#include "controller/cli/yaml_scalar.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

// A JSON string is a double-quoted YAML scalar, but for the control characters
// that JSON lets stand: DEL and C1 (in UTF-8: C2 80 to C2 9F).
std::string Quoted(const std::string& text) {
  const std::string json = Json(text).dump();
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next =
        static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : '\0');
    if (byte == 0x7F) {
      out += "\\x7F";
    } else if (byte == 0xC2 && next < 0xA0) {
      out += fmt::format("\\x{:02X}", next);
      ++i;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string Text(const std::string& text) {
  return NeedsQuotes(text) ? Quoted(text) : text;
}

bool IsBlock(const Json& value) {
  return (value.is_object() || value.is_array()) && !value.empty();
}

void Emit(const Json& value, size_t indent, std::string& out);

std::string Scalar(const Json& value) {
  if (value.is_string()) return Text(value.get_ref<const std::string&>());
  return value.dump();  // numbers, true, null, [] and {}
}

void EmitObject(const Json& object, size_t indent, std::string& out) {
  bool first = true;
  for (const auto& [key, value] : object.items()) {
    if (!first) out.append(indent, ' ');
    first = false;
    out += Text(key);
    out += ':';
    if (!IsBlock(value)) {
      out += ' ';
      out += Scalar(value);
      out += '\n';
      continue;
    }
    out += "\n";
    // A list may stand at the indentation of its key, as kubectl prints it.
    const size_t inner = value.is_array() ? indent : indent + 2;
    out.append(inner, ' ');
    Emit(value, inner, out);
  }
}

void EmitList(const Json& list, size_t indent, std::string& out) {
  bool first = true;
  for (const Json& element : list) {
    if (!first) out.append(indent, ' ');
    first = false;
    out += "- ";
    if (IsBlock(element)) {
      Emit(element, indent + 2, out);
    } else {
      out += Scalar(element);
      out += '\n';
    }
  }
}

// A list or object whose first line is already indented.
void Emit(const Json& value, size_t indent, std::string& out) {
  if (value.is_object()) {
    EmitObject(value, indent, out);
  } else {
    EmitList(value, indent, out);
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  if (!IsBlock(value)) return Scalar(value) + "\n";
  std::string out;
  Emit(value, 0, out);
  return out;
}

std::string ToYaml(const std::vector<Json>& documents) {
  std::string out;
  for (const Json& document : documents) {
    if (!out.empty()) out += "---\n";
    out += ToYaml(document);
  }
  return out;
}

}  // namespace disttrain
