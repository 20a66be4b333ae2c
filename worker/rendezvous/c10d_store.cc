// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/c10d_store.h"

#include <utility>

#include "absl/time/clock.h"
#include "c10/util/Exception.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

std::string Text(const std::vector<uint8_t>& bytes) {
  return std::string(bytes.begin(), bytes.end());
}

std::vector<uint8_t> Bytes(const std::string& text) {
  return std::vector<uint8_t>(text.begin(), text.end());
}

absl::Time In(const std::chrono::milliseconds& timeout) {
  return timeout == c10d::Store::kNoTimeout
             ? absl::InfiniteFuture()
             : absl::Now() + absl::FromChrono(timeout);
}

// The one place where a status becomes the exception that c10d expects.
void OrThrow(const absl::Status& status) {
  TORCH_CHECK_WITH(DistStoreError, status.ok(),
                   "rendezvous store: ", Message(status));
}

template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  OrThrow(value.status());
  return *std::move(value);
}

}  // namespace

RendezvousStore::RendezvousStore(std::shared_ptr<RendezvousClient> client,
                                 std::chrono::milliseconds timeout)
    : c10d::Store(timeout),
      client_(std::move(client)),
      prefix_(fmt::format("c10d/{}/", client_->caller().attempt())) {}

c10::intrusive_ptr<c10d::Store> RendezvousStore::clone() {
  return c10::make_intrusive<RendezvousStore>(client_, timeout_);
}

absl::Time RendezvousStore::Deadline() const { return In(timeout_); }

std::vector<std::string> RendezvousStore::Keys(
    const std::vector<std::string>& keys) const {
  std::vector<std::string> prefixed;
  prefixed.reserve(keys.size());
  for (const std::string& key : keys) prefixed.push_back(Key(key));
  return prefixed;
}

void RendezvousStore::set(const std::string& key,
                          const std::vector<uint8_t>& value) {
  OrThrow(client_->Set(Key(key), Text(value), Deadline()));
}

std::vector<uint8_t> RendezvousStore::compareSet(
    const std::string& key, const std::vector<uint8_t>& expected,
    const std::vector<uint8_t>& desired) {
  return Bytes(OrThrow(client_->CompareSet(Key(key), Text(expected),
                                           Text(desired), Deadline())));
}

std::vector<uint8_t> RendezvousStore::get(const std::string& key) {
  return Bytes(OrThrow(client_->Get(Key(key), Deadline())));
}

int64_t RendezvousStore::add(const std::string& key, int64_t value) {
  return OrThrow(client_->Add(Key(key), value, Deadline()));
}

bool RendezvousStore::deleteKey(const std::string& key) {
  return OrThrow(client_->Delete(Key(key), Deadline()));
}

bool RendezvousStore::check(const std::vector<std::string>& keys) {
  return OrThrow(client_->Check(Keys(keys), Deadline()));
}

int64_t RendezvousStore::getNumKeys() {
  return OrThrow(client_->CountKeys(Deadline()));
}

void RendezvousStore::wait(const std::vector<std::string>& keys) {
  wait(keys, timeout_);
}

void RendezvousStore::wait(const std::vector<std::string>& keys,
                           const std::chrono::milliseconds& timeout) {
  OrThrow(client_->Wait(Keys(keys), In(timeout)));
}

void RendezvousStore::append(const std::string& key,
                             const std::vector<uint8_t>& value) {
  OrThrow(client_->Append(Key(key), Text(value), Deadline()));
}

std::vector<std::vector<uint8_t>> RendezvousStore::multiGet(
    const std::vector<std::string>& keys) {
  std::vector<std::vector<uint8_t>> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(get(key));
  return values;
}

void RendezvousStore::multiSet(
    const std::vector<std::string>& keys,
    const std::vector<std::vector<uint8_t>>& values) {
  TORCH_CHECK_WITH(DistStoreError, keys.size() == values.size(),
                   "rendezvous store: multiSet with ", keys.size(),
                   " keys and ", values.size(), " values");
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

}  // namespace disttrain
