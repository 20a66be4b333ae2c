// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/worker_process.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/runtime/status.h"
#include "torch/version.h"
#include "worker/programs/catalogue.h"
#include "worker/programs/outcome.h"

namespace disttrain {
namespace {

// Between the time by which a process means to leave and the one by which it
// does, even if the deciding thread is stuck.
constexpr absl::Duration kSlack = absl::Seconds(1);

MetricsOptions MetricsOptionsFor(const Identity& identity) {
  MetricsOptions options;
  options.job_name = identity.job;
  options.role = identity.role;
  options.rank = identity.rank;
  options.world_size = identity.world_size;
  options.torch_version = TORCH_VERSION;
  return options;
}

rpc::Peer PeerFrom(const v1::Member& member) {
  return {.rank = member.rank(),
          .incarnation = member.incarnation(),
          .role = member.role(),
          .role_index = member.role_index(),
          .pod = member.pod(),
          .replaceable = member.replaceable()};
}

RpcFigures FiguresOf(const rpc::Agent& agent,
                     const transport::Endpoint& endpoint) {
  const rpc::AgentStatistics calls = agent.statistics();
  const transport::Endpoint::Statistics bytes = endpoint.statistics();
  RpcFigures figures;
  figures.calls_in_flight = calls.outgoing_calls;
  figures.server_calls_active = calls.incoming_calls;
  figures.sent_bytes = bytes.sent_bytes;
  figures.received_bytes = bytes.received_bytes;
  figures.references_owned = calls.owned_objects;
  figures.references_used = calls.remote_references;
  figures.references_pending = calls.pending_forks;
  figures.pool_threads = calls.call_threads + bytes.threads;
  figures.pool_idle_threads = bytes.idle_threads;
  return figures;
}

}  // namespace

WorkerProcess::WorkerProcess(const Identity& identity,
                             const NamedProgram& program, Log log)
    : identity_(identity),
      program_(program),
      log_(std::move(log)),
      metrics_(MetricsOptionsFor(identity)),
      progress_(identity.report_interval),
      session_(identity),
      exit_timer_([this] { ExpireStop(); }),
      signal_thread_([this](int number) { OnSignal(number); }) {}

WorkerProcess::~WorkerProcess() = default;

void WorkerProcess::Run() {
  const absl::Status status = SetUp();
  if (status.ok()) return End(Serve());
  if (signals_taken_.load() == 0) return End(EndingFor(status));
  End({.code = ExitCode::kPeerLost,
       .cause = "told to stop while the ranks were meeting"});
}

absl::Status WorkerProcess::SetUp() {
  if (identity_.metrics_port.has_value()) {
    auto pages = StatusPages::Start(*identity_.metrics_port, metrics_, log_);
    if (!pages.ok()) {
      return Annotate(pages.status(), fmt::format("{}={}", env::kMetricsPort,
                                                  *identity_.metrics_port));
    }
    pages_ = *std::move(pages);
    log_.Info("metrics are served", {{"port", pages_->port()}});
  }
  RETURN_IF_ERROR(Meet());
  StartAgent();
  session_.client().StartHeartbeat(
      identity_.report_interval,
      [this] {
        metrics_.HeartbeatDone(absl::Now());
        return progress_.Snapshot();
      },
      [this](const v1::Event& event) { events_.Push(event); });
  StartProgram();
  set_up_ = true;
  if (signals_taken_.load() > 0) events_.Push(SignalReceived{"a signal"});
  return absl::OkStatus();
}

absl::Status WorkerProcess::Meet() {
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(session_.Open(program_.info.driver,
                                start + identity_.rendezvous_timeout));
  std::vector<std::string> roles;
  std::set<std::string> replaceable_roles;
  Lifecycle::Options options;
  for (const v1::Member& member : session_.members()) {
    peers_.push_back(PeerFrom(member));
    roles.push_back(member.role());
    if (!member.replaceable()) continue;
    options.replaceable.insert(member.rank());
    replaceable_roles.insert(member.role());
  }
  RETURN_IF_ERROR(CheckRoles(program_, roles, replaceable_roles));
  driver_rank_ = DriverRank(program_, roles);
  options.rank = identity_.rank;
  options.driver = identity_.rank == driver_rank_;
  lifecycle_.emplace(std::move(options));
  log_.Info("all ranks have met",
            {{"world_size", identity_.world_size},
             {"driver_rank", driver_rank_},
             {"seconds", absl::ToDoubleSeconds(absl::Now() - start)}});
  return absl::OkStatus();
}

void WorkerProcess::StartAgent() {
  rpc::AgentOptions options;
  options.self = peers_[static_cast<size_t>(identity_.rank)];
  options.peers = peers_;
  for (const v1::Member& member : session_.members()) {
    options.addresses.push_back(
        {.id = {.rank = member.rank(), .incarnation = member.incarnation()},
         .address = member.address()});
  }
  options.endpoint = &session_.endpoint();
  options.registry = program_.info.remotes;
  options.observer = &call_metrics_;
  options.on_peer_lost = [this](const rpc::Peer& peer,
                                const std::string& reason) {
    events_.Push(PeerLost{peer.rank, reason});
  };
  agent_ = rpc::Agent::Start(std::move(options));
  if (pages_ != nullptr) {
    pages_->SetSource(
        {.figures = [this] { return FiguresOf(*agent_, session_.endpoint()); },
         .calls = [this] { return agent_->DebugCalls(); }});
  }
}

void WorkerProcess::StartProgram() {
  if (identity_.rank != driver_rank_) return;
  program_view_ = std::make_unique<Program>(
      Program::Context{.identity = identity_,
                       .peers = peers_,
                       .stop_requested = stop_requested_,
                       .metrics = metrics_,
                       .progress = progress_,
                       .log = log_});
  train_ = std::thread([this] {
    NameThread("train");
    const rpc::Agent::Scope scope(*agent_);
    try {
      program_.run(*program_view_);
      events_.Push(ProgramReturned{});
    } catch (...) {
      events_.Push(OutcomeOf(std::current_exception()));
    }
  });
}

Ending WorkerProcess::Serve() {
  for (;;) {
    const std::optional<WorkerEvent> event =
        events_.Pop(lifecycle_->deadline());
    const WorkerActions actions = event.has_value()
                                      ? lifecycle_->On(*event, absl::Now())
                                      : lifecycle_->OnTime(absl::Now());
    NotePlan();
    for (const WorkerAction& action : actions) Perform(action);
    if (std::optional<Ending> ending = LeavingOf(actions)) {
      return Explained(*std::move(ending));
    }
  }
}

void WorkerProcess::NotePlan() {
  const std::optional<Lifecycle::Plan> plan = lifecycle_->plan();
  if (!plan.has_value()) return;
  {
    absl::MutexLock lock(&mu_);
    planned_ = plan->ending;
  }
  exit_timer_.Arm(plan->leave_at + kSlack);
}

void WorkerProcess::Perform(const WorkerAction& action) {
  struct Performer {
    WorkerProcess& self;
    void operator()(const RequestStop&) const { self.stop_requested_ = true; }
    void operator()(const CancelCalls& cancel) const {
      self.agent_->Abort(cancel.reason);
    }
    void operator()(const TellFailure& tell) const {
      self.Try("telling the failure",
               self.session_.client().ReportFailure(tell.failure));
    }
    void operator()(const TellFinish& tell) const {
      self.Try("telling the end", self.session_.client().Finish(tell.reason));
    }
    void operator()(const DropPeer& drop) const {
      const rpc::Peer peer = PeerFrom(drop.member);
      self.log_.Warn(
          "a rank is lost; the others go on",
          {{"peer", Describe(peer)}, {"incarnation", peer.incarnation}});
      self.agent_->Drop(peer, "rank 0 hears nothing of it");
    }
    void operator()(const ReplacePeer& replace) const {
      const rpc::Peer peer = PeerFrom(replace.member);
      self.log_.Info("a rank is back", {{"peer", Describe(peer)},
                                        {"incarnation", peer.incarnation}});
      self.agent_->Replace(peer, replace.member.address());
    }
    void operator()(const Leave&) const {}
  };
  std::visit(Performer{*this}, action);
}

// The others hear of it anyway, when this process is gone.
void WorkerProcess::Try(std::string_view what,
                        const absl::Status& status) const {
  if (status.ok()) return;
  log_.Warn("rank 0 does not answer",
            {{"doing", what}, {"status", Message(status)}});
}

std::optional<Ending> WorkerProcess::LeavingOf(const WorkerActions& actions) {
  for (const WorkerAction& action : actions) {
    if (const auto* leave = std::get_if<Leave>(&action)) return leave->ending;
  }
  return std::nullopt;
}

}  // namespace disttrain
