// Could Ringscope record a job here?
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

constexpr uint64_t kLittle = uint64_t{1} << 30;  // of room for traces and NCCL's log

void Look(const Question& question, Verdict* verdict) {
  const node::Record& record = question.now.record();
  if (!HasGpu(question.now)) return verdict->NotPresent("no GPU here: nothing to record");
  const node::Asked* library = AskedOf(question.now, "library");
  const node::Asked* directory = AskedOf(question.now, "directory");
  std::string line;
  if (library != nullptr && !library->answered() && !library->absent()) {
    verdict->Warning(absl::StrCat("loading libringscope.so: ", library->why_not()),
                     {"A job that loads it may not start.", "run jobs without ringscope run until this is mended", "NC-08"});
  } else if (!record.library_trouble().empty()) {
    verdict->Warning(record.library_trouble(), {"Jobs on this node are not recorded.",
                                                "install the build for this architecture and C library; give --library", ""});
  } else if (!record.library().empty()) {
    line = absl::StrCat(record.library(), " loads");
  }
  if (directory != nullptr && !directory->answered() && !directory->absent()) {
    verdict->Warning(
        absl::StrCat("the trace directory: ", directory->why_not()),
        {"Its file system does not answer: a job that writes there waits, too.", "df; mount; look at the file server", "UC-06"});
  } else if (!record.directory_trouble().empty()) {
    verdict->Warning(
        absl::StrCat(record.directory(), " ", record.directory_trouble()),
        {"Traces of a hang would be lost.", "RINGSCOPE_DIR or --dir: a directory that the job's user may write", ""});
  } else if (!record.directory().empty()) {
    absl::StrAppend(&line, line.empty() ? "" : "; ", record.directory(), " takes traces");
    if (record.directory_free() < kLittle)
      verdict->Warning(absl::StrCat(record.directory(), " has ", Bytes(record.directory_free()), " free"),
                       {"Logs of a large job may fill it.", absl::StrCat("df -h ", record.directory()), ""});
  }
  if (line.empty()) return verdict->NotPresent("neither a library nor a directory was named");
  verdict->Seen(line);
}

const RegisterCheck kRegister({"record", "Ringscope's library loads here and traces can be written", Look});

}  // namespace
}  // namespace ringscope::doctor
