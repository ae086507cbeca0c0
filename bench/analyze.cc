// How fast `ringscope diagnose` is and how much memory it takes, by the number of ranks.
//
//   analyze [--ringscope FILE] [--dir DIR] [--ranks 64,256,1024] [--ops 256] [--comms 4] [--keep]
//
// Makes the traces of a hanging job on the spot: hosts of 8 ranks, and per rank the communicator of the whole job, one of its
// host, one across hosts and one of pairs, each with the same number of operations; rank n/2+3 never enters the last operation of
// its host's communicator, and everybody else waits for it. Each size runs in a process of its own: wall and CPU time, peak
// memory, ranks a second, and whether the rank was found. The traces are read from the page cache.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "proto/trace.pb.h"
#include "recorder/flight/crc32c.h"
#include "recorder/flight/encode.h"

namespace {

using namespace ringscope;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int kHost = 8;

struct Shape {
  int ranks = 64, ops = 256, comms = 4;
  int Culprit() const { return ranks / 2 + 3; }
};

struct Group {
  uint64_t id = 0;
  int rank = 0, size = 0;
};

// The communicators of a job rank, as a framework would make them: all, tensor parallel, data parallel, pairs.
std::vector<Group> GroupsOf(const Shape& s, int rank) {
  const int host = rank / kHost, local = rank % kHost, hosts = s.ranks / kHost;
  std::vector<Group> all = {{0x1000, rank, s.ranks},
                            {0x20000u + static_cast<uint64_t>(host), local, kHost},
                            {0x300000u + static_cast<uint64_t>(local), host, hosts},
                            {0x4000000u + static_cast<uint64_t>(rank / 2), rank % 2, 2}};
  all.resize(static_cast<size_t>(s.comms));
  return all;
}

// Times are those of one clock; operations of all communicators follow each other.
class RankTrace {
 public:
  RankTrace(const Shape& shape, int rank) : shape_(shape), rank_(rank), noise_(static_cast<unsigned>(rank)) {}

  trace::Trace Make() {
    Head();
    const std::vector<Group> groups = GroupsOf(shape_, rank_);
    for (size_t g = 0; g < groups.size(); ++g) AddCommunicator(groups, g);
    return std::move(trace_);
  }

 private:
  void Head() {
    auto& p = *trace_.mutable_process();
    p.set_host("gpu-" + std::to_string(rank_ / kHost));
    p.set_boot_id("boot-" + std::to_string(rank_ / kHost));
    p.set_pid(4000 + rank_ % kHost);
    p.set_start_ticks(9000);
    p.set_job_id("bench");
    p.set_rank(rank_);
    p.set_local_rank(rank_ % kHost);
    p.set_world_size(shape_.ranks);
    p.set_nonce(static_cast<uint32_t>(rank_ + 1));
    for (const char* name : {"NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES", "MASTER_ADDR"})
      (*p.mutable_environment())[name] = "value";
    trace_.set_reason(trace::REASON_STALL);
    trace_.set_written_ns(At(shape_.ops) + 70 * kSecond);
    trace_.set_sequence(1);
    auto& clock = *trace_.mutable_clock();
    clock.set_monotonic_ns(trace_.written_ns());
    clock.set_realtime_ns(trace_.written_ns() + 1'700'000'000 * kSecond);
    clock.set_first_monotonic_ns(kSecond);
    clock.set_first_realtime_ns(kSecond + 1'700'000'000 * kSecond);
    trace_.mutable_settings()->set_stall_seconds(60);
    trace_.mutable_settings()->set_heartbeat_seconds(1);
    auto& life = *trace_.mutable_liveness();
    life.set_heartbeat_ns(trace_.written_ns());
    life.set_heartbeat_realtime_ns(clock.realtime_ns());
    life.set_heartbeats(70);
  }
  int64_t At(int op) const { return 100 * kSecond + op * int64_t{4'000'000}; }

  // The newest operations in full, as the recorder keeps them, the others as columns.
  void AddCommunicator(const std::vector<Group>& groups, size_t g) {
    const bool culprit = rank_ == shape_.Culprit();
    const bool with_culprit = g == 1 && rank_ / kHost == shape_.Culprit() / kHost;
    auto& c = *trace_.add_communicators();
    c.set_row(static_cast<uint32_t>(g));
    c.set_comm_id(groups[g].id);
    c.set_ordinal(static_cast<uint32_t>(g));
    c.set_rank(static_cast<uint32_t>(groups[g].rank));
    c.set_n_ranks(static_cast<uint32_t>(groups[g].size));
    c.set_profiler_api(6);
    c.set_api_events(true);
    c.set_completion_visible(true);
    c.set_created_ns(50 * kSecond);
    c.set_generation(1);
    // All but the culprit's host wait in the communicator of the whole job, its host in its own.
    int entered = shape_.ops;
    bool open = false;
    if (with_culprit) {
      if (culprit) --entered;
      open = !culprit;
    } else if (g == 0) {
      if (rank_ / kHost == shape_.Culprit() / kHost) --entered;
      open = entered == shape_.ops;
    } else if (g > 1) {
      --entered;
    }
    const int full = std::min(entered, 2);
    auto& older = *c.mutable_older();
    auto& signature = *older.add_signatures();
    signature.set_func(trace::ALL_REDUCE);
    signature.set_datatype(trace::BFLOAT16);
    signature.set_count(1 << 20);
    signature.set_root(-1);
    signature.set_peer(-1);
    signature.set_algo(trace::RING);
    signature.set_proto(trace::SIMPLE);
    signature.set_channels(16);
    signature.set_stream(0x7f00);
    signature.set_from_api(true);
    int64_t before = 0;
    for (int i = 0; i < entered - full; ++i) {
      const int64_t at = Entered(i, g);
      older.add_signature(0);
      older.add_position_delta(1);
      older.add_entered_delta_ns(at - before);
      older.add_returned_after_ns(40'000);
      older.add_enqueued_after_ns(38'000);
      older.add_started_after_ns(90'000 + Noise());
      older.add_duration_ns(static_cast<uint64_t>(700'000 + Noise()));
      older.add_gpu_duration_ns(static_cast<uint64_t>(690'000 + Noise()));
      older.add_group(static_cast<uint32_t>(i * 4) + static_cast<uint32_t>(g) + 1);
      older.add_row(static_cast<uint32_t>(i % 256));
      before = at;
    }
    older.add_generation_from(0);
    older.add_generation(1);
    for (int i = entered - full; i < entered; ++i) AddFull(i, g, open && i + 1 == entered, &c);
    c.set_collectives(static_cast<uint64_t>(entered));
    c.set_launched(static_cast<uint64_t>(entered));
    c.set_completed(static_cast<uint64_t>(entered - (open ? 1 : 0)));
    c.set_last_progress_ns(Entered(entered - 1, g) + 900'000);
  }
  int64_t Noise() { return static_cast<int64_t>(noise_() % 20'000); }
  int64_t Entered(int i, size_t g) { return At(i) + static_cast<int64_t>(g) * 900'000 + Noise(); }

  void AddFull(int i, size_t g, bool open, trace::Communicator* c) {
    auto& op = *c->add_operations();
    op.set_row(static_cast<uint32_t>(i % 256));
    op.set_generation(1);
    op.set_position(static_cast<uint64_t>(i) + 1);
    op.set_func(trace::ALL_REDUCE);
    op.set_datatype(trace::BFLOAT16);
    op.set_count(1 << 20);
    op.set_root(-1);
    op.set_peer(-1);
    op.set_algo(trace::RING);
    op.set_proto(trace::SIMPLE);
    op.set_channels(16);
    op.set_stream(0x7f00);
    op.set_from_api(true);
    const int64_t at = Entered(i, g);
    op.set_entered_ns(at);
    op.set_returned_ns(at + 40'000);
    op.set_enqueued_ns(at + 38'000);
    op.set_started_ns(at + 95'000);
    op.set_kernels_started(16);
    if (open) {
      op.set_unfinished(true);
    } else {
      op.set_finished_ns(at + 800'000);
      op.set_kernels_stopped(16);
    }
  }

  const Shape shape_;
  const int rank_;
  std::minstd_rand noise_;
  trace::Trace trace_;
};

void Little(size_t v, std::string* out) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}

void AddChunk(const trace::Trace& part, std::string* out) {
  const std::string payload = part.SerializeAsString();
  Little(payload.size(), out);
  Little(flight::Crc32c(payload.data(), payload.size()), out);
  *out += payload;
}

bool WriteTraces(const Shape& shape, const std::string& dir) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const std::string host = dir + "/gpu-" + std::to_string(rank / kHost);
    std::filesystem::create_directories(host);
    std::string bytes(flight::kTraceMagic);
    AddChunk(RankTrace(shape, rank).Make(), &bytes);
    trace::Trace end;
    end.mutable_end()->set_chunks(1);
    AddChunk(end, &bytes);
    std::ofstream file(host + "/rank" + std::to_string(rank) + ".trace", std::ios::binary);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return false;
  }
  return true;
}

double Seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; }

int Measure(const Shape& shape, const std::string& ringscope, const std::string& dir, bool keep) {
  const std::string traces = dir + "/" + std::to_string(shape.ranks), out = traces + ".json";
  std::filesystem::remove_all(traces);
  if (!WriteTraces(shape, traces)) {
    fprintf(stderr, "analyze: cannot write below %s\n", dir.c_str());
    return 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    if (freopen(out.c_str(), "w", stdout) == nullptr || freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
    execl(ringscope.c_str(), ringscope.c_str(), "diagnose", "--format=json", traces.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  struct rusage usage = {};
  wait4(child, &status, 0, &usage);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::ifstream result(out);
  std::string text((std::istreambuf_iterator<char>(result)), {}), squeezed;
  for (char c : text) {
    if (c != ' ' && c != '\n') squeezed += c;
  }
  const bool found = squeezed.find("\"kind\":\"missing_rank\"") != std::string::npos &&
                     squeezed.find("\"ranks\":[" + std::to_string(shape.Culprit()) + "]") != std::string::npos;
  printf("%6d ranks x %d x %d operations: %7.3f s wall %7.3f s CPU %9.0f ranks/s %7.1f MiB  %s\n", shape.ranks, shape.comms, shape.ops,
         wall, Seconds(usage.ru_utime) + Seconds(usage.ru_stime), shape.ranks / wall, static_cast<double>(usage.ru_maxrss) / 1024,
         found ? "rank found" : "RANK NOT FOUND");
  fflush(stdout);
  if (!keep) {
    std::filesystem::remove_all(traces);
    std::filesystem::remove(out);
  }
  return found ? 0 : 1;
}

int Usage() {
  fprintf(stderr, "usage: analyze [--ringscope FILE] [--dir DIR] [--ranks N,N,...] [--ops N] [--comms 1-4] [--keep]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string ringscope = (std::filesystem::path(argv[0]).parent_path() / "../ringscope").string();
  std::string dir = "/tmp", list = "64,256,1024,4096,16384";
  Shape shape;
  bool keep = false;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (!strcmp(argv[i], "--ringscope") && more) {
      ringscope = argv[++i];
    } else if (!strcmp(argv[i], "--dir") && more) {
      dir = argv[++i];
    } else if (!strcmp(argv[i], "--ranks") && more) {
      list = argv[++i];
    } else if (!strcmp(argv[i], "--ops") && more) {
      shape.ops = atoi(argv[++i]);
    } else if (!strcmp(argv[i], "--comms") && more) {
      shape.comms = atoi(argv[++i]);
    } else if (!strcmp(argv[i], "--keep")) {
      keep = true;
    } else {
      return Usage();
    }
  }
  if (shape.ops < 3 || shape.comms < 2 || shape.comms > 4) return Usage();
  dir += "/ringscope-analyze";
  int failed = 0;
  for (size_t at = 0; at < list.size(); at = list.find(',', at) == std::string::npos ? list.size() : list.find(',', at) + 1) {
    shape.ranks = atoi(list.c_str() + at);
    if (shape.ranks < 2 * kHost || shape.ranks % kHost != 0) {
      fprintf(stderr, "analyze: %d ranks: a multiple of %d, from %d on\n", shape.ranks, kHost, 2 * kHost);
      return 2;
    }
    failed |= Measure(shape, ringscope, dir, keep);
  }
  return failed;
}
