// Shapes seen in public logs; one function a shape. Each takes its wrapper from the start of a line or leaves the line alone.
#include "analyzer/ingest/line_wrappers.h"

#include <array>

#include "analyzer/ingest/scan.h"
#include "analyzer/ingest/time_stamp.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

constexpr int kMostWrappers = 8;  // stacked; more is not a log

void OneSpace(Scan* s) { s->Char(' '); }

// "[rank5]:" of torch >= 2.2, "[default3]:" of its launcher's tee.
bool TorchTag(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t n = 0;
  if (a.Literal("[rank") && a.Number(&n, 1, 6) && (a.Literal("]:") || a.Literal("] "))) {  // scripts write the tag without a colon
    line->by.rank = static_cast<int>(n);
  } else if (a = *s; a.Literal("[default") && a.Number(&n, 1, 4) && a.Literal("]:")) {
    line->by.local_rank = static_cast<int>(n);
  } else {
    return false;
  }
  OneSpace(&a);
  *s = a;
  return true;
}

// "[1,12]<stdout>:" of Open MPI.
bool MpiTag(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t job = 0, rank = 0;
  if (!a.Char('[') || !a.Number(&job, 1, 9) || !a.Char(',') || !a.Number(&rank, 1, 7) || !a.Char(']')) return false;
  if (!a.Literal("<stdout>:") && !a.Literal("<stderr>:") && !a.Literal("<stddiag>:")) return false;
  line->by.rank = static_cast<int>(rank);
  OneSpace(&a);
  *s = a;
  return true;
}

// "12: " of srun -l, "12:" alone. Not "2: eth0: <UP>" of ip, whose number is an interface.
bool SrunTask(Scan* s, TextLine* line) {
  Scan a = *s;
  a.Spaces();
  int64_t task = 0;
  if (!a.Number(&task, 1, 6) || !a.Char(':') || !(a.rest.empty() || a.Char(' '))) return false;
  if (Contains(a.rest.substr(0, 40), ": <")) return false;
  line->by.rank = static_cast<int>(task);
  *s = a;
  return true;
}

// "(RayWorkerWrapper pid=7, ip=10.0.0.2) ", "(Worker_TP1 pid=9) ", "(PolicyWorker[rank=9] pid=7) ".
bool ActorTag(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t pid = 0;
  if (!a.Char('(')) return false;
  const std::string_view name =
      a.While([](char c) { return Scan::HostChar(c) || c == ':' || c == '[' || c == '=' || c == ']'; });
  if (name.empty() || !a.Literal(" pid=") || !a.Number(&pid)) return false;
  std::string_view ip;
  if (a.Literal(", ip=")) ip = a.While([](char c) { return c != ')'; });
  if (!a.Char(')')) return false;
  line->by.pid = pid;
  if (!ip.empty()) line->by.host = ip;
  if (const size_t named = name.find("[rank="); named != name.npos) {
    Scan number(name.substr(named + 6));
    int64_t rank = 0;
    if (number.Number(&rank, 1, 6)) line->by.rank = static_cast<int>(rank);
  }
  if (const size_t tp = name.rfind("_TP"); tp != name.npos) {
    Scan number(name.substr(tp + 3));
    int64_t rank = 0;
    if (number.Number(&rank, 1, 5)) line->by.rank = static_cast<int>(rank);
  }
  OneSpace(&a);
  *s = a;
  return true;
}

// A time stamp, with or without brackets, and what loggers put beside it.
bool Time(Scan* s, TextLine* line) {
  Scan a = *s;
  a.Spaces();
  if (a.Char('|')) a.Spaces();
  const bool bracket = a.Char('[');
  model::Stamp stamp;
  // journalctl -o short-full: "Wed 2026-08-05 03:12:01 CEST ".
  Scan weekday = a;
  if (weekday.While(Scan::Alpha).size() == 3 && weekday.Char(' ') && TakeDateTime(&weekday, &stamp)) {
    a = weekday;
    Scan zone = a;
    OneSpace(&zone);
    const std::string_view name = zone.While([](char c) { return c >= 'A' && c <= 'Z'; });
    if (name == "UTC") stamp.clock = model::Stamp::Clock::kRealtime;
    if (!name.empty() && zone.rest.starts_with(" ")) a = zone;
  } else if (!TakeDateTime(&a, &stamp) && !TakeTimeOfDay(&a, &stamp)) {
    return false;
  }
  if (bracket) {
    // sglang: "[2025-01-02 03:04:05 DP0 TP1] ".
    while (a.Char(' ')) {
      int64_t n = 0;
      if (a.Literal("TP") && a.Number(&n, 1, 5)) {
        line->by.rank = static_cast<int>(n);
      } else if (a.While(Scan::HostChar).empty()) {
        break;
      }
    }
    if (!a.Char(']')) return false;
  } else if (!a.rest.empty() && a.rest[0] != ' ' && a.rest[0] != ':' && a.rest[0] != '|' && a.rest[0] != '\t') {
    return false;
  }
  a.Char(':');
  a.Spaces();
  if (a.Char('|')) a.Spaces();
  line->time = stamp;
  *s = a;
  return true;
}

// "[01/02/2025-03:04:05] [TRT-LLM] [RANK 3] [I] ".
bool TrtLlm(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t n = 0;
  if (!a.Char('[') || !a.Number(&n, 2, 2) || !a.Char('/') || !a.Number(&n, 2, 2) || !a.Char('/') || !a.Number(&n, 4, 4)) return false;
  if (!a.Char('-') || !TakeTimeOfDay(&a, &line->time) || !a.Literal("] ")) return false;
  while (a.Char('[')) {
    const std::string_view word = a.While([](char c) { return c != ']'; });
    Scan inside(word);
    if (inside.Literal("RANK ") && inside.Number(&n, 1, 6)) line->by.rank = static_cast<int>(n);
    a.Char(']');
    a.Spaces();
  }
  *s = a;
  return true;
}

// "ERROR 01-02 03:04:05 [file.py:12] " of vLLM.
bool VllmLevel(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t n = 0;
  if (!a.Literal("ERROR ") && !a.Literal("WARNING ") && !a.Literal("INFO ") && !a.Literal("CRITICAL ")) return false;
  if (!a.Number(&n, 2, 2) || !a.Char('-') || !a.Number(&n, 2, 2) || !a.Char(' ')) return false;
  model::Stamp stamp;
  if (!TakeTimeOfDay(&a, &stamp)) return false;
  a.Spaces();
  if (a.Char('[')) {
    a.While([](char c) { return c != ']'; });
    a.Char(']');
  } else if (const size_t end = a.rest.find("] "); end != a.rest.npos && end < 60) {
    a.rest.remove_prefix(end + 1);
  }
  OneSpace(&a);
  line->time = stamp;
  *s = a;
  return true;
}

// "May 16, 2026 @ 20:46:57.892    " of Kibana.
bool Kibana(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t n = 0;
  if (a.While(Scan::Alpha).size() != 3 || !a.Char(' ') || !a.Number(&n, 1, 2) || !a.Literal(", ") || !a.Number(&n, 4, 4) ||
      !a.Literal(" @ ") || !TakeTimeOfDay(&a, &line->time))
    return false;
  a.Spaces();
  *s = a;
  return true;
}

// "Aug 23 22:22:51 host kernel: ", "2024-08-23T22:22:51+0000 host systemd[1]: " (the stamp is gone already).
bool SyslogHost(Scan* s, TextLine* line, bool after_stamp) {
  Scan a = *s;
  model::Stamp stamp;
  if (!after_stamp) {
    if (!TakeSyslogTime(&a, &stamp) || !a.Char(' ')) return false;
  }
  const std::string_view host = a.While(Scan::HostChar);
  if (host.empty() || !a.Char(' ')) return false;
  const std::string_view program = a.While([](char c) { return Scan::HostChar(c) || c == '/' || c == '@' || c == '(' || c == ')'; });
  if (program.empty()) return false;
  int64_t pid = 0;
  const bool with_pid = a.Char('[');
  if (with_pid && (!a.Number(&pid) || !a.Char(']'))) return false;
  if (!a.Literal(": ") && !(a.rest == ":")) return false;
  // Behind a stamp that every program writes, "EDAC MC0: " of the kernel and "INFO trainer: " of a logger look the same.
  if (after_stamp && !with_pid && program != "kernel") return false;
  if (stamp.known()) line->time = stamp;
  line->by.host = host;
  *s = a;
  return true;
}

// What "journalctl -o cat", a copied line or Talos leave of it: "kernel: ", "kern: warning: [2026-04-22T21:27:51Z]: ".
bool KernelTag(Scan* s, TextLine* line) {
  Scan a = *s;
  if (a.Literal("kernel: ")) {
    *s = a;
    return true;
  }
  if (!a.Literal("kern: ") || a.While(Scan::Alpha).empty() || !a.Literal(": [")) return false;
  model::Stamp stamp;
  if (!TakeDateTime(&a, &stamp) || !a.Literal("]: ")) return false;
  line->time = stamp;
  *s = a;
  return true;
}

// "<4>[  12.3] …" of dmesg -r, "4,9921,9370042162,-;…" of /dev/kmsg (its time is in microseconds since boot).
bool RawKernel(Scan* s, TextLine* line) {
  Scan a = *s;
  int64_t n = 0, us = 0;
  if (a.Char('<')) {
    if (!a.Number(&n, 1, 3) || !a.Char('>') || !a.rest.starts_with("[")) return false;
  } else {
    if (!a.Number(&n, 1, 4) || !a.Char(',') || !a.Number(&n) || !a.Char(',') || !a.Number(&us, 1, 15) || !a.Char(',')) return false;
    a.While([](char c) { return c != ';' && c != ' '; });
    if (!a.Char(';')) return false;
    if (!line->time.known()) line->time = {model::Stamp::Clock::kBoot, us * 1000};
  }
  *s = a;
  return true;
}

// "[  123.456789] ", and dmesg -x's "kern  :warn  : [  123.456789] ".
bool Dmesg(Scan* s, TextLine* line) {
  Scan a = *s;
  for (const char* facility : {"kern", "user", "daemon", "syslog"}) {
    Scan b = *s;
    if (!b.Literal(facility)) continue;
    b.Spaces();
    if (!b.Char(':')) continue;
    b.Spaces();
    if (b.While(Scan::Alpha).empty()) continue;
    b.Spaces();
    if (!b.Char(':')) continue;
    b.Spaces();
    if (!b.rest.empty() && b.rest[0] == '[') a = b;
  }
  model::Stamp stamp;
  if (!TakeDmesgTime(&a, &stamp)) return false;
  // syslog puts its own stamp before the kernel's, which says more.
  if (!line->time.known() || line->time.clock == model::Stamp::Clock::kOfDay) line->time = stamp;
  a.Char(':');
  a.Spaces();
  *s = a;
  return true;
}

// A log viewer's line number: "[80746] [rank0]:…".
bool ViewerNumber(Scan* s, TextLine*) {
  Scan a = *s;
  int64_t n = 0;
  if (!a.Char('[') || !a.Number(&n, 1, 9) || !a.Literal("] [")) return false;
  if (!a.rest.starts_with("rank") && !a.rest.starts_with("default") && !a.rest.starts_with("E ")) return false;
  a.rest = s->rest.substr(s->rest.size() - a.rest.size() - 1);
  *s = a;
  return true;
}

// "node7: " of pdsh, kubectl and the like: only before something that is a log line by itself.
bool HostTag(Scan* s, TextLine* line) {
  Scan a = *s;
  const std::string_view host = a.While(Scan::HostChar);
  if (host.size() < 2 || !a.Literal(": ")) return false;
  const std::string_view head = a.rest.substr(0, 160);
  const bool log = Contains(head, " NCCL INFO ") || Contains(head, " NCCL WARN ") ||
                   head.starts_with("[rank") || head.starts_with("[E ") || head.starts_with("NVRM: ") ||
                   head.starts_with("NCCL version ") || head.starts_with("Traceback (most recent") || head.starts_with("kern: ");
  model::Stamp stamp;
  Scan dmesg(head);
  // An exception's class is followed by a message of any kind: "RuntimeError: NCCL WARN …" is not a host.
  if ((!log && !TakeDmesgTime(&dmesg, &stamp)) || host == "kernel" || host.ends_with("Error") || host.ends_with("Exception")) return false;
  line->by.host = host;
  *s = a;
  return true;
}

// Torch's own prefix stays in the text; its rank is taken: "[E ProcessGroupNCCL.cpp:475] [Rank 2] …", "[PG ID 0 … Rank 1] …".
void TorchRank(std::string_view text, TextLine* line) {
  if (line->by.rank >= 0 || text.size() < 8 || text[0] != '[') return;
  const std::string_view head = text.substr(0, 160);
  const size_t at = head.find("Rank ");
  if (at == head.npos || at == 0 || (head[at - 1] != '[' && head[at - 1] != ' ')) return;
  // In a group that does not span the job this is the rank within the group: "[PG ID 2 PG GUID 9(tp) Rank 1]".
  if (const size_t group = head.rfind("[PG ", at); group != head.npos) {
    Scan id(head.substr(group + 4));
    int64_t n = 0;
    id.Literal("ID ");
    if (!id.Number(&n) || n != 0) return;
  }
  Scan a(head.substr(at + 5));
  int64_t rank = 0;
  if (a.Number(&rank, 1, 6) && a.Char(']')) line->by.rank = static_cast<int>(rank);
}

// "[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607]": month, day and time; no year.
void TorchTime(std::string_view text, TextLine* line) {
  if (line->time.known() || text.size() < 16 || text[0] != '[' || !Contains("EWIF", text.substr(1, 1))) return;
  Scan a(text.substr(2));
  int64_t date = 0;
  if (!a.Number(&date, 3, 4) || !a.Char(' ')) return;
  model::Stamp clock;
  if (!TakeTimeOfDay(&a, &clock)) return;
  if (!DateWithoutYear(date / 100, date % 100, &clock)) return;
  line->time = clock;
}

}  // namespace

std::string_view StripWrappers(std::string_view text, TextLine* line) {
  using Shape = bool (*)(Scan*, TextLine*);
  static constexpr std::array<Shape, 14> kShapes = {
      TorchTag, MpiTag,   SrunTask, ActorTag, Dmesg,        Time,
      TrtLlm,   VllmLevel, Kibana,   ViewerNumber, HostTag, KernelTag, RawKernel,
      [](Scan* s, TextLine* l) { return SyslogHost(s, l, /*after_stamp=*/false); }};
  Scan s(text);
  for (int round = 0; round < kMostWrappers && !s.rest.empty(); ++round) {
    // Every shape starts with one of these, or with a name that SyslogHost and HostTag look at.
    bool taken = false;
    for (const Shape shape : kShapes) {
      const model::Stamp before = line->time;
      if (!shape(&s, line)) continue;
      taken = true;
      // journalctl -o short-iso: the stamp, then host and program.
      if (line->time.known() && line->time.ns != before.ns) SyslogHost(&s, line, /*after_stamp=*/true);
      break;
    }
    if (!taken) break;
  }
  TorchRank(s.rest, line);
  TorchTime(s.rest, line);
  return s.rest;
}

std::string_view StripNcclPrefix(std::string_view text, TextLine* line) {
  line->quote = text;
  // "…NCCL INFO x", wherever it stands: a progress bar may be glued before it.
  size_t at = 0, end = 0;
  while ((at = text.find("NCCL ", at)) != text.npos) {
    Scan level(text.substr(at + 5));
    line->nccl = level.Literal("INFO ")   ? TextLine::Nccl::kInfo
                 : level.Literal("WARN ") ? TextLine::Nccl::kWarn
                 : level.Literal("TRACE ") || level.Literal("CALL ") ? TextLine::Nccl::kTrace
                                                                     : TextLine::Nccl::kNone;
    if (line->nccl != TextLine::Nccl::kNone && (at == 0 || text[at - 1] == ' ')) {
      end = text.size() - level.rest.size();
      break;
    }
    line->nccl = TextLine::Nccl::kNone;
    at += 5;
  }
  if (line->nccl == TextLine::Nccl::kNone) return text;
  const std::string_view message = text.substr(end);
  std::string_view before = text.substr(0, at == 0 ? 0 : at - 1);
  const size_t bracket = before.rfind('[');
  if (bracket == before.npos) return message;
  Scan device(before.substr(bracket + 1));
  int64_t n = 0;
  if (!device.Number(&n, 1, 4) || !device.Char(']')) return message;
  line->by.device = static_cast<int>(n);
  device.Spaces();
  line->nccl_source = device.rest.substr(0, device.rest.find(' '));
  before = before.substr(0, bracket);
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  const size_t start = before.rfind(' ') == before.npos ? 0 : before.rfind(' ') + 1;
  const std::string_view who = before.substr(start);
  const size_t colon2 = who.rfind(':');
  const size_t colon1 = colon2 == who.npos || colon2 == 0 ? who.npos : who.rfind(':', colon2 - 1);
  if (colon1 == who.npos) return message;
  Scan pid(who.substr(colon1 + 1)), tid(who.substr(colon2 + 1));
  if (!pid.Number(&line->by.pid) || !tid.Number(&line->by.tid)) return message;
  std::string_view host = who.substr(0, colon1);
  // A progress bar that is glued to the host's name.
  size_t first = host.size();
  while (first > 0 && Scan::HostChar(host[first - 1])) --first;
  host.remove_prefix(first);
  if (!host.empty()) line->by.host = host;
  line->quote = text.substr(host.data() - text.data());
  if (start > 0 && text[0] == '[') {
    Scan stamp(text.substr(1));
    TakeDateTime(&stamp, &line->time);
  }
  return message;
}

}  // namespace ringscope::ingest
