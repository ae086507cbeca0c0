// What each rank's program does, iteration after iteration.
#include <algorithm>

#include "tests/property/world.h"

namespace ringscope::property {
namespace {

// Writes the program of one rank.
class Writer {
 public:
  Writer(const World& w, int rank, bool own_streams, bool blocking, Program* out)
      : w_(w), rank_(rank), own_streams_(own_streams), blocking_(blocking), out_(*out) {}
  int iteration = 0;

  int CommOf(const std::string& name) const {
    for (size_t i = 0; i < w_.comms.size(); ++i) {
      if (w_.comms[i].name == name && w_.comms[i].RankOf(rank_) >= 0) return static_cast<int>(i);
    }
    return -1;
  }
  void Host(double seconds) { Add({.what = Do::kHost, .seconds = seconds}); }
  void Compute(double seconds) { Add({.what = Do::kCompute, .seconds = seconds}); }
  void Sync() { Add({.what = Do::kSync}); }
  // A collective; `join`: the compute stream waits for it.
  void Coll(int comm, trace::Func func, uint64_t count, bool join) {
    if (comm < 0) return;
    Before(comm);
    Step step = {.what = Do::kCall};
    step.call = {.comm = comm, .func = func, .count = count};
    step.stream = StreamOf(comm);
    Add(step);
    After(comm, join);
  }
  struct Message {
    bool send;
    int peer;  // in the communicator; -1: none
    uint64_t count;
  };
  void Messages(int comm, const std::vector<Message>& messages) {
    if (comm < 0) return;
    int present = 0;
    for (const Message& m : messages) present += m.peer >= 0 ? 1 : 0;
    if (present == 0) return;
    if (present > 1) ++group_;
    Before(comm);
    for (const Message& m : messages) {
      if (m.peer < 0) continue;
      Step step = {.what = Do::kCall};
      step.call = {.comm = comm,
                   .func = m.send ? trace::SEND : trace::RECV,
                   .count = m.count,
                   .peer = m.peer};
      step.stream = StreamOf(comm);
      step.group = present > 1 ? group_ : 0;
      Add(step);
    }
    After(comm, true);
  }
  // All collectives that compute did not wait for yet.
  void Join() {
    if (own_streams_) {
      for (int comm : open_) Add({.what = Do::kWait, .stream = 0, .other = StreamOf(comm)});
    }
    open_.clear();
  }

 private:
  int StreamOf(int comm) const { return own_streams_ ? comm + 1 : 0; }
  void Before(int comm) {
    if (own_streams_) Add({.what = Do::kWait, .stream = StreamOf(comm), .other = 0});
  }
  void After(int comm, bool join) {
    if (blocking_) {
      Sync();
    } else if (own_streams_ && join) {
      Add({.what = Do::kWait, .stream = 0, .other = StreamOf(comm)});
    } else if (std::find(open_.begin(), open_.end(), comm) == open_.end()) {
      open_.push_back(comm);
    }
  }
  void Add(Step step) {
    step.iteration = iteration;
    out_.push_back(step);
  }
  const World& w_;
  const int rank_;
  const bool own_streams_, blocking_;
  Program& out_;
  std::vector<int> open_;
  int group_ = 0;
};

struct Shape {
  int layers = 2, buckets = 2, micro = 4;
  double compute = 0.005;
  std::vector<uint64_t> counts;  // of layers, then buckets
  uint64_t message = 1000;
  bool norm = true;    // a small all-reduce over everybody at the end
  int sync_every = 1;  // iterations
};

void Layer(Writer* out, const Shape& s, int tp, Random* random) {
  for (int l = 0; l < s.layers; ++l) {
    out->Compute(s.compute * random->Between(0.95, 1.05));
    out->Coll(tp, trace::ALL_REDUCE, s.counts[static_cast<size_t>(l)], true);
  }
}

// One forward, one backward (Megatron's schedule without interleaving).
void Pipeline(Writer* out, const World& w, const Shape& s, int rank, Random* random) {
  const int tp = out->CommOf("tp"), pp = out->CommOf("pp");
  const Comm& comm = w.comms[static_cast<size_t>(pp)];
  const int stage = comm.RankOf(rank), stages = comm.n();
  const int before = stage > 0 ? stage - 1 : -1, after = stage + 1 < stages ? stage + 1 : -1;
  const int warm = std::min(stages - stage - 1, s.micro), steady = s.micro - warm;
  const auto work = [&] {
    out->Compute(s.compute * random->Between(0.95, 1.05));
    if (tp >= 0) Layer(out, s, tp, random);
  };
  const auto recv_forward = [&] { out->Messages(pp, {{false, before, s.message}}); };
  const auto send_backward = [&] { out->Messages(pp, {{true, before, s.message}}); };
  for (int i = 0; i < warm; ++i) {
    recv_forward();
    work();
    out->Messages(pp, {{true, after, s.message}});
  }
  if (steady > 0) recv_forward();
  for (int i = 0; i < steady; ++i) {
    work();
    out->Messages(pp, {{true, after, s.message}, {false, after, s.message}});
    work();
    if (i + 1 < steady) {
      out->Messages(pp, {{true, before, s.message}, {false, before, s.message}});
    } else {
      send_backward();
    }
  }
  for (int i = 0; i < warm; ++i) {
    out->Messages(pp, {{false, after, s.message}});
    work();
    send_backward();
  }
}

void AllToAll(Writer* out, const World& w, const Shape& s, int ep, int rank) {
  if (ep < 0) return;
  const Comm& comm = w.comms[static_cast<size_t>(ep)];
  const int self = comm.RankOf(rank);
  std::vector<Writer::Message> messages;
  for (int other = 0; other < comm.n(); ++other) {
    if (other == self) continue;
    messages.push_back({true, other, s.message});
    messages.push_back({false, other, s.message});
  }
  out->Messages(ep, messages);
}

void Iteration(Writer* out, const World& w, const Shape& s, int rank, Random* random) {
  const int world = out->CommOf("world"), extra = out->CommOf("extra");
  const auto bucket = [&](int b) { return s.counts[static_cast<size_t>(s.layers + b)]; };
  switch (w.layout) {
    case Layout::kDp:
      for (int b = 0; b < s.buckets; ++b) {
        out->Compute(s.compute * random->Between(0.95, 1.05));
        out->Coll(world, trace::ALL_REDUCE, bucket(b), false);
      }
      out->Join();
      if (extra >= 0) out->Coll(extra, trace::ALL_REDUCE, 1, true);
      break;
    case Layout::kFsdp:
      for (int l = 0; l < s.layers; ++l) {
        out->Coll(world, trace::ALL_GATHER, s.counts[static_cast<size_t>(l)], true);
        out->Compute(s.compute * random->Between(0.95, 1.05));
      }
      for (int l = s.layers - 1; l >= 0; --l) {
        out->Compute(s.compute * random->Between(0.95, 1.05));
        out->Coll(world, trace::REDUCE_SCATTER, s.counts[static_cast<size_t>(l)], false);
      }
      out->Join();
      if (extra >= 0) out->Coll(extra, trace::ALL_REDUCE, 1, true);
      break;
    case Layout::kTpDp: {
      Layer(out, s, out->CommOf("tp"), random);
      for (int b = 0; b < s.buckets; ++b)
        out->Coll(out->CommOf("dp"), trace::ALL_REDUCE, bucket(b), false);
      out->Join();
      if (s.norm) out->Coll(world, trace::ALL_REDUCE, 1, true);
      break;
    }
    case Layout::kPpTpDp:
      Pipeline(out, w, s, rank, random);
      out->Coll(out->CommOf("dp"), trace::ALL_REDUCE, bucket(0), true);
      out->Join();
      if (s.norm) out->Coll(world, trace::ALL_REDUCE, 1, true);
      break;
    case Layout::kEp:
      for (int l = 0; l < s.layers; ++l) {
        out->Compute(s.compute * random->Between(0.95, 1.05));
        AllToAll(out, w, s, out->CommOf("ep"), rank);
        out->Compute(s.compute * random->Between(0.95, 1.05));
        AllToAll(out, w, s, out->CommOf("ep"), rank);
      }
      for (int b = 0; b < s.buckets; ++b) out->Coll(world, trace::ALL_REDUCE, bucket(b), false);
      out->Join();
      break;
  }
}

}  // namespace

void MakePrograms(Random* random, World* w) {
  Shape s;
  s.layers = random->From(1, 4);
  s.buckets = random->From(1, 4);
  s.micro = random->From(2, 6);
  s.compute = random->Spread(0.001, 0.02);
  for (int i = 0; i < s.layers + s.buckets; ++i)
    s.counts.push_back(1 + static_cast<uint64_t>(random->Spread(16, 4e6)));
  s.message = static_cast<uint64_t>(random->Spread(64, 2e6));
  s.norm = random->Chance(0.7);
  s.sync_every = random->Chance(0.6) ? 1 : random->From(2, 4);
  const bool blocking = random->Chance(0.25), own_streams = random->Chance(0.5);
  w->op_seconds = random->Spread(0.0005, 0.01);
  w->iterations = w->ranks > 64 ? random->From(4, 6) : random->From(6, 16);
  w->programs.resize(static_cast<size_t>(w->ranks));
  for (int r = 0; r < w->ranks; ++r) {
    Writer out(*w, r, own_streams, blocking, &w->programs[static_cast<size_t>(r)]);
    for (int it = 0; it < w->iterations; ++it) {
      out.iteration = it;
      out.Host(random->Between(0.0003, 0.0008));
      Iteration(&out, *w, s, r, random);
      // Somebody reads the loss now and then, and the first iteration is looked at by everyone.
      if (it == 0 || (it + 1) % s.sync_every == 0) out.Sync();
    }
    out.Sync();
  }
}

}  // namespace ringscope::property
