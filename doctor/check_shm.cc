// /dev/shm: what ranks of one node share, and what data loaders use.
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

// One ring's buffers of one pair of ranks are about 10 MB, eight ranks with a few channels some hundred; 64 MiB is what a
// container gets unless told otherwise.
constexpr uint64_t kTooSmall = uint64_t{256} << 20, kSmall = uint64_t{1} << 30;

void Look(const Question& question, Verdict* verdict) {
  const node::Host& host = question.now.limits();
  const std::string more = "in containers --shm-size=16g or --ipc=host (Kubernetes: emptyDir with medium: Memory)";
  const std::string clean = "df -h /dev/shm; ls -l /dev/shm; with no job running: rm -f /dev/shm/nccl-*";
  const char* why = "NCCL fails at start with \"No space left on device\", and data loaders with a bus error.";
  if (!host.has_shm_bytes()) {
    const node::Asked* asked = AskedOf(question.now, "shm");
    if (asked != nullptr && !asked->answered() && !asked->absent()) return verdict->CouldNotTell("/dev/shm: " + asked->why_not());
    if (!HasGpu(question.now)) return verdict->NotPresent("no /dev/shm, and no GPU that would need it");
    return verdict->Failed("there is no /dev/shm", {why, "mount -t tmpfs tmpfs /dev/shm", "NC-08"});
  }
  const std::string seen = absl::StrCat("/dev/shm has ", Bytes(host.shm_bytes()), ", ", Bytes(host.shm_free()), " free");
  verdict->Seen(seen);
  if (!HasGpu(question.now)) return;
  const bool shrunk = question.before != nullptr && question.before->limits().shm_bytes() > 0 &&
                      host.shm_bytes() < question.before->limits().shm_bytes() / 2;
  const std::string before = shrunk ? Bytes(question.before->limits().shm_bytes()) : "";
  if (host.shm_bytes() < kTooSmall)
    verdict->Failed(seen, {why, more, "NC-08"}, before);
  else if (host.shm_free() < kTooSmall)
    verdict->Failed(seen, {why, clean, "NC-08"}, before);
  else if (host.shm_bytes() < kSmall)
    verdict->Warning(seen, {why, more, "NC-08"}, before);
  else if (host.shm_free() < kSmall)
    verdict->Warning(seen, {why, clean, "NC-08"}, before);
  else if (shrunk)
    verdict->Warning(seen, {why, more, "NC-08"}, before);
}

const RegisterCheck kRegister({"shm", "/dev/shm is large enough and has room", Look});

}  // namespace
}  // namespace ringscope::doctor
