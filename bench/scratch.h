// A folder for what a plugin under test writes; gone at the end.
#ifndef RINGSCOPE_BENCH_SCRATCH_H_
#define RINGSCOPE_BENCH_SCRATCH_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ringscope::bench {

class Scratch {
 public:
  // Makes the folder and points RINGSCOPE_FLIGHT_DIR, RINGSCOPE_DIR at it; no traces. `force`:
  // whatever is set already.
  explicit Scratch(bool force) {
    char name[] = "/dev/shm/ringscope-bench.XXXXXX";
    char other[] = "/tmp/ringscope-bench.XXXXXX";
    const char* made = mkdtemp(name);
    if (made == nullptr) made = mkdtemp(other);
    if (made == nullptr) return;
    folder_ = made;
    setenv("RINGSCOPE_FLIGHT_DIR", made, force);
    setenv("RINGSCOPE_DIR", made, force);
    setenv("RINGSCOPE_TRACES", "0", force);
  }
  ~Scratch() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_SCRATCH_H_
