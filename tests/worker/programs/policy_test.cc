// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/policy.h"

#include <torch/torch.h>

#include <cmath>

#include "gtest/gtest.h"
#include "tests/worker/programs/recording.h"
#include "worker/programs/reinforce/returns.h"

namespace disttrain::reinforce {
namespace {

using Json = nlohmann::json;

// A tensor from (nested) lists of numbers.
at::Tensor TensorFrom(const Json& json, torch::Dtype dtype = torch::kFloat32) {
  std::vector<int64_t> shape;
  for (const Json* level = &json; level->is_array(); level = &(*level)[0]) {
    shape.push_back(static_cast<int64_t>(level->size()));
  }
  std::vector<double> values;
  const std::function<void(const Json&)> collect = [&](const Json& value) {
    if (!value.is_array()) return values.push_back(value.get<double>());
    for (const Json& item : value) collect(item);
  };
  collect(json);
  return torch::tensor(values, torch::kFloat64).reshape(shape).to(dtype);
}

at::Tensor MaskFrom(const Json& rows, double dropout) {
  std::vector<double> values;
  for (const Json& row : rows) {
    for (const char c : row.get<std::string>()) {
      values.push_back(c == '1' ? 1 / (1 - dropout) : 0);
    }
  }
  return torch::tensor(values, torch::kFloat32)
      .reshape({static_cast<int64_t>(rows.size()), -1});
}

Batch BatchFrom(const Json& recording) {
  std::vector<at::Tensor> states;
  std::vector<at::Tensor> actions;
  std::vector<at::Tensor> masks;
  std::vector<double> returns;
  for (const Json& observer : recording["observers"]) {
    states.push_back(TensorFrom(observer["states"]));
    actions.push_back(TensorFrom(observer["actions"], torch::kInt64));
    masks.push_back(MaskFrom(observer["kept"], recording["dropout"]));
    const auto own = DiscountedReturns(observer["rewards"], recording["gamma"]);
    returns.insert(returns.end(), own.begin(), own.end());
  }
  Normalize(returns);
  return {torch::cat(states), torch::cat(actions), torch::cat(masks),
          torch::tensor(returns, torch::kFloat32)};
}

class RecordedPolicy : public testing::Test {
 protected:
  RecordedPolicy() {
    torch::NoGradGuard no_grad;
    for (auto& [name, parameter] : policy_.NamedParameters()) {
      parameter.copy_(TensorFrom(recording_["weights"][name]));
    }
  }

  const Json recording_ = Recording("policy_gradient.json");
  const Batch batch_ = BatchFrom(recording_);
  Policy policy_{{}};
};

TEST_F(RecordedPolicy, HasTheGradientOfPythonsAutograd) {
  const at::Tensor loss = policy_.Loss(batch_);
  EXPECT_NEAR(loss.item<double>(), recording_["loss"].get<double>(), 1e-5);
  loss.backward();
  for (const auto& [name, parameter] : policy_.NamedParameters()) {
    const at::Tensor expected = TensorFrom(recording_["gradients"][name]);
    EXPECT_TRUE(torch::allclose(parameter.grad(), expected, 1e-5, 1e-6))
        << name << " differs by at most "
        << (parameter.grad() - expected).abs().max().item<double>();
  }
}

TEST_F(RecordedPolicy, ReportsLossAndGradientNormOfTheStepItTakes) {
  const Policy::Update update = policy_.Learn(batch_);
  double squares = 0;
  for (const auto& [name, gradient] : recording_["gradients"].items()) {
    squares += TensorFrom(gradient).square().sum().item<double>();
  }
  EXPECT_NEAR(update.loss, recording_["loss"].get<double>(), 1e-5);
  EXPECT_NEAR(update.gradient_norm, std::sqrt(squares), 1e-4);
  // Adam's first step moves each weight by the learning rate against the sign.
  const at::Tensor before = TensorFrom(recording_["weights"]["fc2.bias"]);
  const at::Tensor sign =
      TensorFrom(recording_["gradients"]["fc2.bias"]).sign();
  const at::Tensor after = policy_.NamedParameters().back().second.detach();
  EXPECT_TRUE(torch::allclose(after, before - 1e-2 * sign, 1e-5, 1e-6));
}

TEST(Policy, ActsWithTheProbabilitiesOfItsForwardPass) {
  Policy policy({.seed = 3});
  std::mt19937_64 generator(5);
  for (int i = 0; i < 20; ++i) {
    const auto f = static_cast<float>(i);
    const Policy::Observation observation = {0.1F * f, -1 + 0.1F * f, 0.2F, -f};
    const Policy::Choice choice = policy.Act(observation, generator);
    const at::Tensor expected = policy.Forward(
        torch::tensor(at::ArrayRef<float>(observation)).unsqueeze(0),
        torch::tensor(at::ArrayRef<float>(choice.mask)).unsqueeze(0));
    EXPECT_NEAR(choice.probabilities[0], expected[0][0].item<float>(), 1e-6);
    EXPECT_NEAR(choice.probabilities[1], expected[0][1].item<float>(), 1e-6);
  }
}

TEST(Policy, DropsTheShareOfUnitsItWasToldAndScalesTheRest) {
  Policy policy({.dropout = 0.6});
  std::mt19937_64 generator(5);
  int dropped = 0;
  for (int i = 0; i < 1000; ++i) {
    for (const float value : policy.Act({}, generator).mask) {
      if (value == 0) {
        ++dropped;
      } else {
        ASSERT_FLOAT_EQ(value, 2.5F);
      }
    }
  }
  EXPECT_NEAR(dropped / 128000.0, 0.6, 0.01);
}

TEST(Policy, ChoosesActionsAsOftenAsTheirProbability) {
  Policy policy({.hidden = 8, .dropout = 0});
  std::mt19937_64 generator(5);
  int left = 0;
  double probability = 0;
  for (int i = 0; i < 20000; ++i) {
    const Policy::Choice choice = policy.Act({1, 1, 1, 1}, generator);
    probability = choice.probabilities[0];
    left += choice.action == 0 ? 1 : 0;
  }
  EXPECT_NEAR(left / 20000.0, probability, 0.02);
}

TEST(Policy, StartsWithTorchsDefaultWeightsForItsSeed) {
  const auto one = Policy({.seed = 3}).NamedParameters();
  const auto again = Policy({.seed = 3}).NamedParameters();
  const auto other = Policy({.seed = 4}).NamedParameters();
  ASSERT_EQ(one.size(), 4U);
  for (size_t i = 0; i < one.size(); ++i) {
    const auto& [name, value] = one[i];
    EXPECT_TRUE(torch::equal(value, again[i].second));
    EXPECT_FALSE(torch::equal(value, other[i].second));
    const double bound = name.rfind("fc1", 0) == 0 ? 0.5 : 1 / std::sqrt(128.0);
    EXPECT_LE(value.abs().max().item<double>(), bound);
  }
  EXPECT_GT(one[0].second.abs().max().item<double>(), 0.49);
}

}  // namespace
}  // namespace disttrain::reinforce
