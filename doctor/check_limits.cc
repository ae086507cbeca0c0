// Limits that the job's processes inherit: memory that may be locked for RDMA, open files.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

constexpr uint64_t kUnlimited = ~uint64_t{0};
constexpr uint64_t kLittleMemory = uint64_t{1} << 30;  // less does not hold the buffers of a node's ranks
constexpr uint64_t kFewFiles = 4096;  // sockets of one rank grow with the ranks and channels; 1024 is what a shell begins with

// False: not told.
bool Value(const std::string& text, uint64_t* value) {
  *value = kUnlimited;
  return text == "unlimited" || absl::SimpleAtoi(text, value);
}

const char* const kService = "LimitMEMLOCK=infinity in slurmd's unit file; docker run --ulimit memlock=-1; ulimit -l unlimited";

void Memlock(const Question& question, Verdict* verdict) {
  uint64_t now = 0, before = 0;
  const std::string& text = question.now.limits().memlock();
  if (!Value(text, &now)) return verdict->CouldNotTell("the limit of locked memory cannot be read here");
  const std::string seen =
      now == kUnlimited ? "locked memory is unlimited" : absl::StrCat("locked memory is limited to ", Bytes(now));
  verdict->Seen(seen);
  if (!HasGpu(question.now) || question.now.ports_size() == 0 || now == kUnlimited) return;
  const bool less = question.before != nullptr && Value(question.before->limits().memlock(), &before) && now < before;
  const std::string was = !less ? "" : before == kUnlimited ? "unlimited" : Bytes(before);
  const char* why = "NCCL locks its buffers for the RDMA adapters; it fails with \"Cannot allocate memory\" in ibv_reg_mr.";
  if (now < kLittleMemory)
    verdict->Failed(seen, {why, kService, "NC-08"}, was);
  else
    verdict->Warning(seen, {why, kService, "NC-08"}, was);
}

void OpenFiles(const Question& question, Verdict* verdict) {
  uint64_t now = 0, before = 0;
  const std::string& text = question.now.limits().open_files();
  if (!Value(text, &now)) return verdict->CouldNotTell("the limit of open files cannot be read here");
  const std::string seen = now == kUnlimited ? "open files are unlimited" : absl::StrCat("up to ", now, " open files");
  verdict->Seen(seen);
  if (!HasGpu(question.now)) return;
  const bool less = question.before != nullptr && Value(question.before->limits().open_files(), &before) && now < before;
  if (now < kFewFiles)
    verdict->Warning(seen,
                     {"Each rank opens sockets to many others: large jobs end with \"Too many open files\".",
                      "LimitNOFILE=1048576 in slurmd's unit file; docker run --ulimit nofile=1048576; ulimit -n 65536", "NC-08"},
                     !less                  ? ""
                     : before == kUnlimited ? "unlimited"
                                            : absl::StrCat(before));
}

const RegisterCheck kMemlock({"memlock", "locked memory is not limited where there is RDMA", Memlock});
const RegisterCheck kOpenFiles({"open-files", "enough files may be open", OpenFiles});

}  // namespace
}  // namespace ringscope::doctor
