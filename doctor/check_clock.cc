// The clock, by which logs of several nodes are put in order.
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

void Look(const Question& question, Verdict* verdict) {
  const node::Host& host = question.now.limits();
  if (!host.clock_known()) return verdict->CouldNotTell("the kernel does not tell whether the clock is synchronised");
  if (!host.clock_synchronised() && HasGpu(question.now))
    verdict->Warning("the clock is not synchronised",
                     {"Which error came first is read from the logs of several nodes; wrong clocks turn cause and effect round.",
                      "timedatectl; systemctl start chronyd (or systemd-timesyncd)", "FW-01"});
  verdict->Seen(host.clock_synchronised() ? "synchronised" : "not synchronised");
}

const RegisterCheck kRegister({"clock", "the clock is synchronised", Look});

}  // namespace
}  // namespace ringscope::doctor
