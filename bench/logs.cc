// How fast a job's log is read: lines cut, cleaned, matched against the whole catalogue, handed to the readers; on one core.
// Beside it grep -E with the same patterns over the same file in the same run.
//
//   logs [--size MIB] [--dir DIR] [--keep]
//
// The log is made on the spot: 256 ranks that initialise, trace their collectives and print steps and progress bars, and fail at
// the end. Prints MB/s of each, their ratio, the peak memory of the reader.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "analyzer/ingest/byte_source.h"
#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/text_reader.h"
#include "catalog/catalog.h"

namespace {

using ringscope::catalog::Signatures;
constexpr int kRanks = 256;

// CPU seconds: the ratio must not depend on what else the machine does.
double Spent(int who) {
  struct rusage usage = {};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Initialise(FILE* out, int rank) {
  const int host = rank / 8, device = rank % 8, pid = 4000 + rank;
  char who[64];
  snprintf(who, sizeof(who), "[rank%d]:gpu-%03d:%d:%d [%d] NCCL INFO", rank, host, pid, pid + 9000, device);
  fprintf(out, "%s Bootstrap: Using eth0:10.1.%d.%d<0>\n%s NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.\n", who,
          host, device, who);
  fprintf(
      out,
      "%s NCCL_SOCKET_IFNAME set by environment to eth0\n%s NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.%d.%d<0>\n",
      who, who, host, device);
  fprintf(out, "%s ncclCommInitRank comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0x9a0b - Init START\n", who,
          0x5500000 + rank, rank, kRanks, device, device, 0x1b + device * 16);
  for (int channel = 0; channel < 16; ++channel) {
    fprintf(out, "%s Channel %02d/0 : %d[%d] -> %d[%d] via %s\n", who, channel, rank, device, (rank + 1) % kRanks, (device + 1) % 8,
            device == 7 ? "NET/IB/0/GDRDMA" : "P2P/IPC");
    fprintf(out, "%s Trees [%d] %d/-1/-1->%d->%d\n", who, channel, rank + 1, rank, rank - 1);
  }
  fprintf(out, "%s 16 coll channels, 0 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer\n", who);
  fprintf(out, "%s ncclCommInitRank comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0x9a0b - Init COMPLETE\n", who,
          0x5500000 + rank, rank, kRanks, device, device, 0x1b + device * 16);
}

void Write(FILE* out, int64_t bytes) {
  std::mt19937 random(7);
  for (int rank = 0; rank < kRanks; ++rank) Initialise(out, rank);
  for (int64_t step = 0; ftello(out) < bytes; ++step) {
    for (int i = 0; i < 64; ++i) {
      const int rank = static_cast<int>(random() % kRanks);
      switch (random() % 4) {
        case 0:
          fprintf(
              out,
              "[rank%d]:gpu-%03d:%d:%d [%d] NCCL INFO AllReduce: opCount %" PRIx64
              " sendbuff 0x7f11a0000000 recvbuff 0x7f11a0000000 count %u datatype 7 op 0 root 0 comm 0x%x [nranks=256] stream 0x55aa00\n",
              rank, rank / 8, 4000 + rank, 13000 + rank, rank % 8, step, static_cast<unsigned>(random() % 1000000), 0x5500000 + rank);
          break;
        case 1:
          fprintf(out,
                  "2026-01-02 03:%02d:%02d,%03d - INFO - [rank %d] iteration %" PRId64 "/ 500000 | consumed samples: %" PRId64
                  " | elapsed time per iteration (ms): %u.%u | learning rate: 1.500E-04 | lm loss: 2.%06u | grad norm: 0.%03u\n",
                  static_cast<int>(step / 60 % 60), static_cast<int>(step % 60), i, rank, step, step * 1024,
                  static_cast<unsigned>(2000 + random() % 100), static_cast<unsigned>(random() % 10),
                  static_cast<unsigned>(random() % 1000000), static_cast<unsigned>(random() % 1000));
          break;
        case 2:
          fprintf(out, "[default%d]:Epoch 0:  %d%%|####      | %" PRId64 "/500000 [12:34<56:78,  3.21it/s, v_num=7, train_loss=2.%03u]\n",
                  rank % 8, static_cast<int>(step % 100), step, static_cast<unsigned>(random() % 1000));
          break;
        default:
          fprintf(out,
                  "(RayWorkerWrapper pid=%d, ip=10.1.0.%d) INFO 01-02 03:04:05 [loader.py:88] fetched shard %" PRId64
                  " of dataset web-%d in %u ms\n",
                  4000 + rank, rank / 8, step, rank, static_cast<unsigned>(random() % 300));
      }
    }
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    fprintf(out,
            "[rank%d]:[E102 03:04:05.408271257 ProcessGroupNCCL.cpp:607] [Rank %d] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=9912, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600041 milliseconds before "
            "timing out.\n",
            rank, rank);
  }
}

// The same patterns in the dialect of grep -E.
std::string Extended(std::string pattern) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = pattern.find(from, at)) != pattern.npos; at += to.size()) pattern.replace(at, from.size(), to);
  };
  for (size_t at; (at = pattern.find("(?P<")) != pattern.npos;) pattern.replace(at, pattern.find('>', at) + 1 - at, "(");
  replace("(?:", "(");
  replace("(?i)", "");
  replace("(?i:", "(");
  replace("\\W", "[^A-Za-z0-9_]");
  replace("\\t", "\t");
  replace("\\d", "[0-9]");
  replace("\\w", "[A-Za-z0-9_]");
  replace("\\S", "[^ ]");
  replace("\\s", "[ ]");
  replace("\\b", "");
  replace("*?", "*");
  replace("+?", "+");
  return pattern;
}

bool Takes(const std::string& pattern, const std::string& file) {
  std::ofstream(file) << pattern << "\n";
  const int status = system(("LC_ALL=C grep -E -f '" + file + "' /dev/null > /dev/null 2>&1").c_str());
  unlink(file.c_str());
  return status >= 0 && WEXITSTATUS(status) < 2;
}

double Grep(const std::string& log, const std::string& dir) {
  const std::string patterns = dir + "/ringscope-bench-patterns";
  std::vector<std::string> all;
  for (const auto& signature : Signatures().signature()) {
    for (const auto& pattern : signature.patterns()) all.push_back(Extended(pattern));
  }
  for (const auto& reader : ringscope::ingest::LineReaders()) {
    for (const auto& pattern : reader.triggers) all.push_back(Extended(pattern));
  }
  int refused = 0;
  {
    std::ofstream out(patterns);
    for (const std::string& pattern : all) {
      const bool taken = Takes(pattern, patterns + ".one");
      refused += !taken;
      if (taken) out << pattern << "\n";
    }
  }
  if (refused > 0) printf("(grep -E does not take %d of the patterns)\n", refused);
  const double start = Spent(RUSAGE_CHILDREN);
  // A pipe: into /dev/null grep stops at its first match.
  const std::string command = "LC_ALL=C grep -a -c -E -f '" + patterns + "' '" + log + "' 2>&1";
  FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return -1;
  char line[256];
  while (fgets(line, sizeof(line), output) != nullptr) {
  }
  const int status = pclose(output);
  const double seconds = Spent(RUSAGE_CHILDREN) - start;
  unlink(patterns.c_str());
  // 0 and 1 are grep's answers, 2 its refusal of a pattern.
  return status >= 0 && WEXITSTATUS(status) < 2 ? seconds : -1;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t mib = 1024;
  std::string dir = "/tmp";
  bool keep = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--size") == 0 && i + 1 < argc) {
      mib = atoll(argv[++i]);
    } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
      dir = argv[++i];
    } else if (strcmp(argv[i], "--keep") == 0) {
      keep = true;
    } else {
      fprintf(stderr, "usage: logs [--size MIB] [--dir DIR] [--keep]\n");
      return 64;
    }
  }
  const std::string log = dir + "/ringscope-bench.log";
  FILE* out = fopen(log.c_str(), "w");
  if (out == nullptr) {
    perror(log.c_str());
    return 66;
  }
  Write(out, mib << 20);
  const double megabytes = static_cast<double>(ftello(out)) / 1e6;
  fclose(out);

  ringscope::model::Evidence evidence;
  std::vector<ringscope::model::Record> records;
  auto source = ringscope::ingest::OpenSource(log);
  if (!source.ok()) {
    fprintf(stderr, "%s\n", std::string(source.status().message()).c_str());
    return 66;
  }
  // Once through the page cache, so that the first reader does not pay for the disk.
  std::string bytes;
  for (bool more = true; more; bytes.clear()) more = (*source)->More(&bytes).value_or(false);
  source = ringscope::ingest::OpenSource(log);
  const double start = Spent(RUSAGE_SELF);
  const auto status = ringscope::ingest::ReadText(log, "", source->get(), &evidence, &records);
  const double seconds = Spent(RUSAGE_SELF) - start;
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  if (!status.ok()) fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  size_t patterns = 0;
  for (const auto& signature : Signatures().signature()) patterns += static_cast<size_t>(signature.patterns_size());
  for (const auto& reader : ringscope::ingest::LineReaders()) patterns += reader.triggers.size();
  printf("log of %d ranks: %.0f MB, %" PRIu64 " lines, %zu patterns\n", kRanks, megabytes, evidence.files[0].lines, patterns);
  printf("ringscope: %6.1f MB/s (%.2f s of one core), %zu events kept, peak memory %ld MiB\n", megabytes / seconds, seconds,
         evidence.events.size(), usage.ru_maxrss / 1024);
  const double grep = Grep(log, dir);
  if (grep > 0) {
    printf("grep -E:   %6.1f MB/s (%.2f s of one core); ringscope is %.2f times as fast\n", megabytes / grep, grep, grep / seconds);
  } else {
    printf("grep -E: not measured (it refused a pattern)\n");
  }
  if (!keep) unlink(log.c_str());
  return 0;
}
