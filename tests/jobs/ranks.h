// The ranks of a small job, each a process of its own with the recorder inside.
#ifndef RINGSCOPE_TESTS_JOBS_RANKS_H_
#define RINGSCOPE_TESTS_JOBS_RANKS_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "analyzer/ingest/collect.h"
#include "analyzer/model/model.h"
#include "tests/unit/recorder/in_child.h"

namespace ringscope::jobs {

class Ranks {
 public:
  explicit Ranks(int world) : world_(world) {}

  // Forks the process of `rank`. When `body` returns it exits in order, so its last trace is
  // written.
  void Start(int rank, const std::function<void()>& body) {
    children_[rank] = std::make_unique<Child>([&] {
      const auto set = [](const char* name, const std::string& value) {
        setenv(name, value.c_str(), 1);
      };
      set("RINGSCOPE_DIR", dir_.path() + "/traces");
      set("RINGSCOPE_FLIGHT_DIR", dir_.path() + "/flight");
      set("RINGSCOPE_JOB", "job");
      set("RINGSCOPE_HOST", "host");
      set("RANK", std::to_string(rank));
      set("LOCAL_RANK", std::to_string(rank));
      set("WORLD_SIZE", std::to_string(world_));
      for (const char* name : {"RINGSCOPE", "RINGSCOPE_EVENTS", "RINGSCOPE_TRACES",
                               "RINGSCOPE_STALL_SECONDS", "RINGSCOPE_BOOT_ID"}) {
        unsetenv(name);
      }
      alarm(250);  // eight of them may share one busy core
      body();
    });
  }
  Child& operator[](int rank) { return *children_.at(rank); }
  void WaitForAll() {
    for (auto& [rank, child] : children_) child->Wait();
  }

  // Every rank that was started has a record that can be read.
  bool AllRecord() const {
    const ingest::Collected collected = ingest::Collect({dir_.path()});
    return collected.damaged == 0 && collected.records.size() >= children_.size();
  }
  // What they have left so far.
  model::Job Read() const {
    ingest::Collected collected = ingest::Collect({dir_.path()});
    EXPECT_EQ(collected.damaged, 0);
    return model::BuildJob(std::move(collected.records));
  }

 private:
  TempDir dir_;  // outlives the children
  int world_;
  std::map<int, std::unique_ptr<Child>> children_;
};

// Values from one process to another; a read waits for them.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Put(uint64_t value) const {
    if (write(ends_[1], &value, sizeof(value)) != sizeof(value)) abort();
  }
  uint64_t Take() const {
    uint64_t value = 0;
    if (read(ends_[0], &value, sizeof(value)) != sizeof(value)) abort();
    return value;
  }

 private:
  int ends_[2];
};

}  // namespace ringscope::jobs

#endif  // RINGSCOPE_TESTS_JOBS_RANKS_H_
