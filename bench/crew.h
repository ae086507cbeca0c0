// Threads that live as long as the program, as NCCL's do: a plugin keeps things per thread.
#ifndef RINGSCOPE_BENCH_CREW_H_
#define RINGSCOPE_BENCH_CREW_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ringscope::bench {

class Crew {
 public:
  ~Crew();
  // Runs `job(i)` for i = 0 … count-1 at once, each on thread i of the crew, and waits for all.
  void Run(size_t count, const std::function<void(size_t)>& job);

 private:
  void Work(size_t index);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  const std::function<void(size_t)>* job_ = nullptr;
  size_t wanted_ = 0;  // threads of this run
  size_t running_ = 0;
  uint64_t run_ = 0;  // number of the run
  bool stop_ = false;
};

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_CREW_H_
