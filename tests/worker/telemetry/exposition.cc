// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/telemetry/exposition.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace disttrain {
namespace {

// One line, read from left to right.
class Line {
 public:
  explicit Line(const std::string& text) : text_(text) {}

  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::to_string(at_) +
                             " of: " + text_);
  }
  bool AtEnd() const { return at_ == text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Take(const std::string& token) {
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void Expect(const std::string& token) {
    if (!Take(token)) Fail("expected '" + token + "'");
  }
  // [a-zA-Z_:][a-zA-Z0-9_:]*, without colons for a label.
  std::string Name(bool colons) {
    const size_t start = at_;
    while (!AtEnd() && IsNameCharacter(Peek(), at_ == start, colons)) ++at_;
    if (at_ == start) Fail("expected a name");
    return text_.substr(start, at_ - start);
  }
  std::string Quoted() {
    Expect("\"");
    std::string value;
    while (!Take("\"")) {
      if (AtEnd()) Fail("unterminated value");
      if (Take("\\\\")) {
        value += '\\';
      } else if (Take("\\\"")) {
        value += '"';
      } else if (Take("\\n")) {
        value += '\n';
      } else if (Peek() == '\\') {
        Fail("unknown escape");
      } else {
        value += text_[at_++];
      }
    }
    return value;
  }
  std::string Rest() {
    std::string rest = text_.substr(at_);
    at_ = text_.size();
    return rest;
  }
  double Number() {
    std::string word = Rest();
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (word == "nan") return std::nan("");
    if (word == "+inf") return std::numeric_limits<double>::infinity();
    if (word == "-inf") return -std::numeric_limits<double>::infinity();
    size_t used = 0;
    double number = 0;
    try {
      number = std::stod(word, &used);
    } catch (const std::exception&) {
      Fail("expected a number, not '" + word + "'");
    }
    if (used != word.size() || word.empty()) Fail("expected one number");
    return number;
  }

 private:
  static bool IsNameCharacter(char c, bool first, bool colons) {
    const auto u = static_cast<unsigned char>(c);
    return std::isalpha(u) != 0 || c == '_' || (colons && c == ':') ||
           (!first && std::isdigit(u) != 0);
  }

  const std::string text_;
  size_t at_ = 0;
};

Sample ParseSample(Line& line) {
  Sample sample;
  sample.name = line.Name(/*colons=*/true);
  if (line.Take("{")) {
    while (!line.Take("}")) {
      const std::string name = line.Name(/*colons=*/false);
      line.Expect("=");
      if (!sample.labels.emplace(name, line.Quoted()).second) {
        line.Fail("duplicate label " + name);
      }
      if (line.Peek() != '}') line.Expect(",");
    }
  }
  line.Expect(" ");
  sample.value = line.Number();
  return sample;
}

std::string FamilyOf(const Exposition& exposition, const std::string& sample) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    const size_t size = std::string(suffix).size();
    if (sample.size() <= size ||
        sample.compare(sample.size() - size, size, suffix) != 0) {
      continue;
    }
    std::string family = sample.substr(0, sample.size() - size);
    const auto found = exposition.types.find(family);
    if (found != exposition.types.end() && found->second == "histogram") {
      return family;
    }
  }
  return sample;
}

class Parser {
 public:
  void Comment(Line& line) {
    const bool help = line.Take("HELP ");
    if (!help) line.Expect("TYPE ");
    const std::string name = line.Name(/*colons=*/true);
    line.Expect(" ");
    auto& target = help ? parsed_.help : parsed_.types;
    if (seen_.count(name) != 0) line.Fail("comment after samples");
    if (!target.emplace(name, line.Rest()).second) line.Fail("repeated");
    const std::string& type = parsed_.types[name];
    if (!help && type != "counter" && type != "gauge" && type != "histogram") {
      line.Fail("unknown type");
    }
    if (help) parsed_.types.erase(name);
  }

  void AddSample(Line& line) {
    const Sample sample = ParseSample(line);
    const std::string family = FamilyOf(parsed_, sample.name);
    if (parsed_.types.count(family) == 0) line.Fail("sample without TYPE");
    if (family != last_ && seen_.count(family) != 0) {
      line.Fail("samples of a family are not together");
    }
    last_ = family;
    seen_.insert(family);
    if (!series_.emplace(sample.name, sample.labels).second) {
      line.Fail("duplicate series");
    }
    parsed_.samples.push_back(sample);
  }

  const Exposition& parsed() const { return parsed_; }

 private:
  Exposition parsed_;
  std::string last_;
  std::set<std::string> seen_;
  std::set<std::pair<std::string, Labels>> series_;
};

}  // namespace

double Exposition::Value(const std::string& name, const Labels& labels) const {
  std::vector<double> found;
  for (const Sample& sample : samples) {
    const bool all =
        std::all_of(labels.begin(), labels.end(), [&sample](const auto& label) {
          const auto same = sample.labels.find(label.first);
          return same != sample.labels.end() && same->second == label.second;
        });
    if (sample.name == name && all) found.push_back(sample.value);
  }
  EXPECT_EQ(found.size(), 1u) << name;
  return found.size() == 1 ? found.front() : std::nan("");
}

size_t Exposition::Count(const std::string& name) const {
  return static_cast<size_t>(
      std::count_if(samples.begin(), samples.end(),
                    [&name](const Sample& s) { return s.name == name; }));
}

Exposition ParseExposition(const std::string& text) {
  if (text.empty() || text.back() != '\n') {
    throw std::runtime_error("the last line does not end");
  }
  nlohmann::json(text).dump();  // throws on wrong UTF-8
  Parser parser;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    Line line(text.substr(start, end - start));
    start = end + 1;
    if (line.AtEnd()) continue;
    if (line.Take("# ")) {
      parser.Comment(line);
    } else {
      parser.AddSample(line);
    }
  }
  return parser.parsed();
}

}  // namespace disttrain
