// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/load_job.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "controller/api/parse_job.h"
#include "controller/api/validate_job.h"
#include "controller/cli/manifest.h"
#include "controller/cli/program_catalog.h"
#include "controller/cli/set_value.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr absl::Duration kWorkerTimeout = absl::Seconds(60);

// A field that --set has set, so that its mistakes are not blamed on the file.
struct Override {
  std::string path;
  std::string argument;
};

std::string ShownPath(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

// At most one byte more than a manifest may have: enough to see that it is too
// large.
absl::StatusOr<std::string> ReadAll(std::istream& stream) {
  std::string text(kMaxManifestBytes + 1, '\0');
  errno = 0;
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) {
    return absl::UnavailableError(
        fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

absl::StatusOr<std::string> ReadSource(const std::string& path,
                                       std::istream& in) {
  if (path == "-") return ReadAll(in);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  return ReadAll(file);
}

// Where a mistake comes from: "job.yaml:12", or the --set that made it.
std::string OriginOf(const std::string& path, const std::string& file,
                     const Manifest& manifest,
                     const std::vector<Override>& overrides) {
  for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
    if (IsWithin(path, it->path)) return "--set " + it->argument;
  }
  const int line = manifest.LineOf(path);
  return line == 0 ? file : fmt::format("{}:{}", file, line);
}

void CheckWithWorker(const JobSource& source, const JobSpec& spec,
                     LoadedJob& loaded) {
  if (spec.program.empty()) return;
  const absl::StatusOr<std::vector<CatalogEntry>> programs =
      AskWorker(loaded.worker, absl::Now() + kWorkerTimeout);
  if (programs.ok()) {
    for (FieldError& error : CheckProgram(spec, *programs)) {
      loaded.errors.push_back(std::move(error));
    }
  } else if (absl::IsNotFound(programs.status()) && source.worker_optional &&
             source.worker.empty()) {
    loaded.warnings.push_back(fmt::format(
        "spec.program and spec.parameters were not checked: {}; name a worker "
        "with --worker",
        Message(programs.status())));
  } else {
    loaded.errors.push_back({"spec.program", Message(programs.status())});
  }
}

// Parses, validates and refuses, in that order of precedence.
void Check(const JobSource& source, const Json& manifest, LoadedJob& loaded) {
  ParsedJob parsed = ParseAndValidate(manifest);
  loaded.errors = std::move(parsed.errors);
  const JobSpec& spec = parsed.job.spec;
  for (FieldError& error : UnsupportedFields(spec)) {
    loaded.errors.push_back(std::move(error));
  }
  CheckWithWorker(source, spec, loaded);
  if (loaded.errors.empty()) loaded.job = std::move(parsed.job);
}

}  // namespace

LoadedJob LoadManifest(const JobSource& source, Streams& streams) {
  LoadedJob loaded;
  loaded.worker = source.worker.empty() ? DefaultWorker() : source.worker;
  const std::string file = ShownPath(source.path);
  const auto fail = [&](const absl::Status& status) {
    loaded.errors.push_back({"", fmt::format("{}: {}", file, Message(status))});
    return std::move(loaded);
  };
  if (source.path.empty()) {
    loaded.errors.push_back({"", "no manifest: give one with -f FILE"});
    return loaded;
  }
  const absl::StatusOr<std::string> text = ReadSource(source.path, streams.in);
  if (!text.ok()) return fail(text.status());
  absl::StatusOr<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return fail(manifest.status());
  std::vector<Override> overrides;
  for (const std::string& set : source.sets) {
    absl::StatusOr<std::string> path = ApplySet(set, manifest->json);
    if (path.ok()) {
      overrides.push_back({*std::move(path), set});
    } else {
      loaded.errors.push_back({"", Message(path.status())});
    }
  }
  if (!loaded.errors.empty()) return loaded;
  Check(source, manifest->json, loaded);
  for (FieldError& error : loaded.errors) {
    error.message =
        fmt::format("{}: {}", OriginOf(error.path, file, *manifest, overrides),
                    error.message);
  }
  return loaded;
}

absl::StatusOr<Job> LoadJob(const JobSource& source, Streams& streams) {
  LoadedJob loaded = LoadManifest(source, streams);
  for (const std::string& warning : loaded.warnings) {
    streams.err << "warning: " << Printable(warning) << '\n';
  }
  for (FieldError& error : loaded.errors) {
    error.message = Printable(error.message);
  }
  RETURN_IF_ERROR(ToStatus(loaded.errors));
  return *std::move(loaded.job);
}

std::string DefaultWorker() {
  std::array<char, 4096> buffer;
  const ssize_t size = readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) return "disttrain-worker";
  const std::string self(buffer.data(), static_cast<size_t>(size));
  return self.substr(0, self.rfind('/') + 1) + "disttrain-worker";
}

}  // namespace disttrain
