// One thing that is looked at before a job. A new check is one file with a static RegisterCheck, and its test; no other file
// changes. It sees what the probes found (proto/node.proto) and nothing else, so a test needs no machine.
#ifndef RINGSCOPE_DOCTOR_CHECK_H_
#define RINGSCOPE_DOCTOR_CHECK_H_

#include <string>
#include <vector>

#include "proto/node.pb.h"

namespace ringscope::doctor {

struct Question {
  const node::Node& now;
  const node::Node* before = nullptr;  // the baseline; nullptr: none
};

// What is told of a problem, besides what was seen.
struct Advice {
  std::string why;    // one sentence
  std::string fix;    // a command or setting
  std::string entry;  // id in the failure catalogue
};

class Verdict {
 public:
  explicit Verdict(node::Check* check) : check_(check) {}
  // The line that stands there when nothing is wrong.
  void Seen(const std::string& line) { check_->set_seen(line); }
  void NotPresent(const std::string& why) {
    check_->set_seen(why);
    check_->set_status(node::Report::not_present);
  }
  // `before`: what it was in the baseline.
  void Failed(const std::string& seen, const Advice& advice, const std::string& before = "") {
    Add(node::Report::failed, seen, advice, before);
  }
  void Warning(const std::string& seen, const Advice& advice, const std::string& before = "") {
    Add(node::Report::warning, seen, advice, before);
  }
  void CouldNotTell(const std::string& why) { Add(node::Report::could_not_tell, why, {"", "", ""}, ""); }

 private:
  void Add(node::Report::Status status, const std::string& seen, const Advice& advice, const std::string& before);
  node::Check* check_;
};

struct Check {
  std::string name;   // short, for --only
  std::string about;  // what is looked at, one line
  void (*look)(const Question& question, Verdict* verdict);
};

struct RegisterCheck {
  explicit RegisterCheck(Check check);
};

// By name.
const std::vector<Check>& Checks();

// ---- for checks

// How that question was answered; nullptr: it was not asked.
const node::Asked* AskedOf(const node::Node& node, const std::string& name);
// True when the GPUs can be judged; otherwise `verdict` says why not.
bool GpusTold(const Question& question, Verdict* verdict);
// Whether a job with NCCL could run here at all: there is a GPU. What is asked of a host only for its sake is not asked
// elsewhere.
bool HasGpu(const node::Node& node);
// "GPU 3 (0000:9d:00.0)".
std::string Label(const node::Gpu& gpu);
// The same GPU, of another time: by its PCI address, or by its index where that is not told.
const node::Gpu* Same(const node::Node* node, const node::Gpu& gpu);
// Whether the baseline is of this very node, not of another one of its kind.
bool OfThisNode(const Question& question);
// "" when it is not set.
std::string Setting(const node::Node& node, const std::string& name);
// "1.5 GiB".
std::string Bytes(uint64_t bytes);
// "1 GPU", "3 GPUs".
std::string Count(size_t n, const std::string& one);

}  // namespace ringscope::doctor

#endif  // RINGSCOPE_DOCTOR_CHECK_H_
