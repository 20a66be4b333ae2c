#include <random>
#include "worker/disttrain.h"
using namespace disttrain;

struct PiParameters {
  int64_t rounds = 20, points = 100000;
  void Visit(ParameterList& p) {
    p("rounds", rounds, "rounds in all");
    p("points", points, "points in the unit square, per sampler and round");
  }
};

class Sampler {  // one on each rank of the role "sampler"
 public:
  explicit Sampler(int64_t seed) : random_(seed) {}
  int64_t CountInside(int64_t points) {
    std::uniform_real_distribution<double> side(0, 1);
    int64_t inside = 0;
    for (int64_t i = 0; i < points; ++i) inside += std::hypot(side(random_), side(random_)) < 1;
    return inside;
  }
  std::mt19937_64 random_;
};
DISTTRAIN_REMOTE(Sampler, CountInside);

void Pi(Program& program) {  // runs on the rank of the role "leader"
  auto p = program.Parameters<PiParameters>();
  rpc::Group<Sampler> samplers(program.Role("sampler"), [](auto& peer) { return int64_t{peer.rank}; });
  double inside = 0;
  for (int64_t round = 1; round <= p.rounds; ++round) {
    for (auto& [peer, count] : samplers.Call(&Sampler::CountInside, p.points).All()) inside += count;
    program.Report({.step = round, .total_steps = p.rounds});
  }
  program.log().Info("estimated", {{"pi", 4 * inside / (p.rounds * p.points * samplers.size())}});
}

int main(int argc, char** argv) {
  return Main(argc, argv, {{"pi", Pi, {.driver = "leader", .parameters = Describe<PiParameters>(),
                                       .remotes = rpc::Remotes<Sampler>()}}});
}
