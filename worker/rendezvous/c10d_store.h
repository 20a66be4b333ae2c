// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "torch/csrc/distributed/c10d/Store.hpp"
#include "worker/rendezvous/client.h"

namespace disttrain {

// The rendezvous service as torch's key-value store: process groups meet
// through it.
//
// Means what TCPStore means, within the limits of key_value.h; queues and
// listKeys are not implemented. Keys carry the attempt. getNumKeys counts the
// keys of everybody.
//
// Every method throws c10::DistStoreError: if a wait passes the timeout (names
// the key), and at once if a failure is broadcast or rank 0 is lost (names the
// rank, role, pod and cause).
// Blocking: up to the timeout (default 300 s; kNoTimeout: for ever).
// Threads: thread-safe, except setTimeout; a clone has a timeout of its own.
// Ownership: shares the client, which outlives all stores and clones so.
class RendezvousStore : public c10d::Store {
 public:
  explicit RendezvousStore(
      std::shared_ptr<RendezvousClient> client,
      std::chrono::milliseconds timeout = c10d::Store::kDefaultTimeout);

  c10::intrusive_ptr<c10d::Store> clone() override;

  using c10d::Store::compareSet;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key,
                                  const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key,
              const std::vector<uint8_t>& value) override;
  std::vector<std::vector<uint8_t>> multiGet(
      const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<uint8_t>>& values) override;
  bool hasExtendedApi() const override { return true; }

 private:
  std::string Key(const std::string& key) const { return prefix_ + key; }
  std::vector<std::string> Keys(const std::vector<std::string>& keys) const;
  absl::Time Deadline() const;

  const std::shared_ptr<RendezvousClient> client_;
  const std::string prefix_;
};

}  // namespace disttrain
