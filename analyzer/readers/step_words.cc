#include "analyzer/readers/step_words.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(Absl(text)); }

bool OneOf(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

}  // namespace

model::StepTime::Part PartOf(std::string_view name) {
  using Part = model::StepTime::Part;
  // Parts of the name, "reduce-wait" is "reduce" and "wait".
  std::vector<std::string> words(1);
  for (const char c : name.substr(0, 80)) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      words.back() += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  const auto any = [&](std::initializer_list<const char*> list) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& w) { return OneOf(w, list); });
  };
  // "data wait" waits for data, "reduce wait" for other ranks: the kind of wait decides.
  if (any({"input", "inputs", "data", "dataload", "dataloader", "dataloading", "loader", "loading", "load", "fetch", "prefetch",
           "read", "io", "dataset", "batching"}))
    return Part::kInput;
  if (any({"save", "saving", "checkpoint", "ckpt", "checkpointing"})) return Part::kSave;
  if (any({"wait",   "waiting",     "comm",          "communication", "reduce",  "allreduce", "all",
           "sync",   "synchronize", "barrier",       "collective",    "nccl",    "idle",      "allgather",
           "gather", "scatter",     "reducescatter", "alltoall",      "blocked", "exposed"}))
    return Part::kWait;
  if (any({"fwd", "bwd", "fw", "bw", "forward", "backward", "compute", "computation", "gpu", "kernel", "kernels", "model", "attn",
           "mlp", "gemm", "matmul", "optimizer", "optim", "opt"}))
    return Part::kCompute;
  if (any({"total", "time", "elapsed", "duration", "took", "step", "iter", "iteration", "steptime", "itertime", "batch", "wall",
           "s", "sec", "ms"}))
    return Part::kTotal;
  return Part::kOther;
}

double UnitSeconds(std::string_view unit) {
  const std::string u = Lower(unit);
  if (OneOf(u, {"s", "sec", "secs", "second", "seconds", "s/it", "s/iter", "s/step", "sec/step", "sec/iter"})) return 1;
  if (OneOf(u, {"ms", "msec", "msecs", "millisecond", "milliseconds", "ms/it", "ms/step", "ms/iter"})) return 1e-3;
  if (OneOf(u, {"us", "usec", "microseconds"})) return 1e-6;
  if (OneOf(u, {"min", "mins", "minutes"})) return 60;
  return 0;
}

bool IsStepWord(std::string_view word) {
  return OneOf(Lower(word),
               {"step", "steps", "iter", "iteration", "it", "global_step", "globalstep", "train_step", "step_id", "batch"});
}

bool IsRankWord(std::string_view word) {
  return OneOf(Lower(word),
               {"rank", "ranks", "worker", "workers", "replica", "replicas", "task", "global_rank", "globalrank", "trainer"});
}

}  // namespace ringscope::ingest
