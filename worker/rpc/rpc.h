// SPDX-License-Identifier: Apache-2.0
//
// Remote calls between the processes of a job. A class lists what peers may do:
//
//   class Counter { public: explicit Counter(int64_t start); int64_t
//   Add(int64_t n); }; DISTTRAIN_REMOTE(Counter, Add);
//
// and any process of the job makes one elsewhere and calls it:
//
//   rpc::RRef<Counter> counter = rpc::Remote<Counter>(/*to=*/1, 40);
//   int64_t sum = counter.Sync(&Counter::Add, 2);                  // 42
//   rpc::Future<int64_t> later = counter.Async(&Counter::Add, 1);
#pragma once

#include "worker/rpc/agent.h"
#include "worker/rpc/call.h"
#include "worker/rpc/call_observer.h"
#include "worker/rpc/call_recorder.h"
#include "worker/rpc/current_call.h"
#include "worker/rpc/error.h"
#include "worker/rpc/future.h"
#include "worker/rpc/group.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/registry.h"
#include "worker/rpc/remote.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/value.h"
