#include "bench/crew.h"

namespace ringscope::bench {

Crew::~Crew() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Crew::Run(size_t count, const std::function<void(size_t)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  wanted_ = running_ = count;
  ++run_;
  while (threads_.size() < count) threads_.emplace_back(&Crew::Work, this, threads_.size());
  changed_.notify_all();
  changed_.wait(lock, [&] { return running_ == 0; });
}

void Crew::Work(size_t index) {
  uint64_t done = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || (run_ != done && index < wanted_); });
    if (stop_) return;
    done = run_;
    const auto* job = job_;
    lock.unlock();
    (*job)(index);
    lock.lock();
    if (--running_ == 0) changed_.notify_all();
  }
}

}  // namespace ringscope::bench
