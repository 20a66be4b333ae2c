// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "worker/programs/parameters.h"

namespace disttrain {

// What a job can set of `reinforce`; the defaults are upstream's
// (github.com/pytorch/examples, distributed/rpc/rl).
struct ReinforceParameters {
  double gamma = 0.99;
  int64_t seed = 543;
  int64_t log_interval = 10;
  double learning_rate = 1e-2;
  double dropout = 0.6;
  int64_t hidden = 128;
  int64_t max_steps = 500;
  int64_t episodes = 1500;
  double reward_threshold = 475;
  int64_t quorum = 0;
  bool require_solved = true;

  void Visit(ParameterList& p) {
    p("gamma", gamma, "discount of later rewards", Range::Closed(0, 1));
    p("seed", seed,
      "seed of weights, masks, actions and, with the rank added, of each "
      "observer's environment",
      Range::AtLeast(0));
    p("log_interval", log_interval, "episodes between two log lines",
      Range::AtLeast(1));
    p("learning_rate", learning_rate, "step size of Adam", Range::Above(0));
    p("dropout", dropout, "share of hidden units dropped",
      Range::HalfOpen(0, 1));
    p("hidden", hidden, "units of the hidden layer", Range::Closed(1, 65536));
    p("max_steps", max_steps, "longest episode, in steps of one observer",
      Range::Closed(1, 1000000));
    p("episodes", episodes, "episodes until training gives up",
      Range::AtLeast(1));
    p("reward_threshold", reward_threshold,
      "running reward above which the task is solved");
    p("quorum", quorum,
      "observers whose episodes are awaited before an update; 0: all",
      Range::AtLeast(0));
    p("require_solved", require_solved,
      "whether a run that is not solved after `episodes` fails");
  }
};

}  // namespace disttrain
