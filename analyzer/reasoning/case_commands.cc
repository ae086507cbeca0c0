#include "analyzer/reasoning/case_commands.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "analyzer/model/bus_id.h"
#include "analyzer/reasoning/text_evidence.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {
namespace {

struct Place {
  std::string host;
  int64_t pid = -1;
};

// Where the rank ran, by its record, else by who wrote its lines.
Place PlaceOf(const model::Job& job, int rank) {
  Place place{job.HostOf(rank), -1};
  for (const model::Process& p : job.processes) {
    if (p.job_rank == rank && p.trace.process().pid() > 0) place.pid = p.trace.process().pid();
  }
  if (!place.host.empty() || rank < 0) return place;
  for (const model::Event& e : job.evidence.events) {
    if (e.by.rank != rank || e.by.host.empty()) continue;
    if (place.host.empty()) place.host = e.by.host;
    if (e.by.host == place.host && e.by.pid > 0) return {e.by.host, e.by.pid};
  }
  return place;
}

// The rank that commands are for: the first that is named, else the first whose record or line is cited. -1: none.
int RankOf(const Finding& f) {
  if (f.who().ranks_size() > 0) return f.who().ranks(0);
  if (f.who().edges_size() > 0) return f.who().edges(0).from();
  if (f.who().hosts_size() > 0) return -1;
  for (const Evidence& e : f.evidence()) {
    if (e.rank() >= 0) return e.rank();
  }
  return -1;
}

bool Number(const std::string& text) {
  return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "GPU 0000:61:00.0", "GPU 3 (0000:61:00.0)", "node1:0000:61:00.0", "GPU 3".
void ReadGpu(std::string name, std::map<std::string, std::string>* values) {
  name = absl::StrReplaceAll(name, {{"GPU ", ""}, {"(", ""}, {")", ""}});
  const size_t blank = name.find(' ');
  const std::string index = blank == name.npos ? name : name.substr(0, blank);
  std::string bus = blank == name.npos ? name : name.substr(blank + 1);
  if (Number(index)) (*values)["{gpu}"] = index;
  // What stands before the bus id, up to a colon, is the host's name.
  while (!model::ParseBusId(bus)) {
    const size_t colon = bus.find(':');
    if (colon == bus.npos) return;
    bus.erase(0, colon + 1);
  }
  (*values)["{bus_id}"] = bus;
}

// "mlx5_3 port 1", "mlx5_3:1", "mlx5_3 port 1 on node7".
void ReadPort(const std::string& link, std::map<std::string, std::string>* values) {
  const size_t end = link.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  const std::string nic = link.substr(0, end);
  if (nic.empty() || nic.find_first_of("0123456789") == nic.npos) return;
  const size_t at = link.find("port ");
  std::string port = at != link.npos ? link.substr(at + 5) : end != link.npos && link[end] == ':' ? link.substr(end + 1) : "";
  port = port.substr(0, port.find_first_not_of("0123456789"));
  (*values)["{nic}"] = nic;
  if (Number(port)) (*values)["{port}"] = port;
}

std::map<std::string, std::string> Values(const model::Job& job, const Finding& f) {
  const int rank = RankOf(f);
  const Place place = PlaceOf(job, rank);
  std::map<std::string, std::string> values;
  values["{host}"] = f.who().hosts_size() > 0 ? f.who().hosts(0) : place.host;
  if (rank >= 0) values["{rank}"] = absl::StrCat(rank);
  if (place.pid > 0 && (f.who().hosts_size() == 0 || f.who().hosts(0) == place.host)) values["{pid}"] = absl::StrCat(place.pid);
  if (f.who().gpus_size() > 0) ReadGpu(f.who().gpus(0), &values);
  if (f.who().links_size() > 0) ReadPort(f.who().links(0), &values);
  return values;
}

std::string Filled(const std::string& command, const std::map<std::string, std::string>& values) {
  std::string out = command;
  for (const char* name : {"{host}", "{pid}", "{rank}", "{gpu}", "{bus_id}", "{nic}", "{port}"}) {
    const auto known = values.find(name);
    const std::string blank = absl::StrReplaceAll(name, {{"{", "<"}, {"}", ">"}});
    const std::string word = known == values.end() || known->second.empty() ? blank : ShellWord(known->second);
    out = absl::StrReplaceAll(out, {{name, !word.empty() && word[0] == '<' ? blank : word}});
  }
  return out;
}

// Looks at the machine on which it runs.
bool OfTheHost(const std::string& command) {
  constexpr const char* kTools[] = {"nvidia-smi", "dmesg", "py-spy", "gdb",  "cuda-gdb", "ibstat",     "perfquery", "ethtool",
                                    "ps",         "df",    "lspci",  "rdma", "numactl",  "journalctl", "dcgmi",     "ip"};
  const std::string first = command.substr(0, command.find(' '));
  return std::any_of(std::begin(kTools), std::end(kTools), [&](const char* tool) { return first == tool; });
}

// `command` as it runs on that host; a note behind "  # " stays behind.
std::string OnHost(const std::string& command, const std::string& host) {
  const size_t note = command.find("  # ");
  const std::string comment = note == command.npos ? "" : command.substr(note);
  const std::string out = command.substr(0, note);
  const bool single = out.find('\'') != out.npos, other = out.find_first_of("\"$`\\!") != out.npos;
  if (single && other) return absl::StrCat(out, comment.empty() ? "  #" : comment, " on ", host);
  const bool words = out.find_first_of(";|&<>()'\"$`\\!*?[]{}#~") == out.npos;
  const char* const quote = words ? "" : single ? "\"" : "'";
  return absl::StrCat("ssh ", host, " ", quote, out, quote, comment);
}

// "py-spy dump --pid <pid of that rank>" for the process that is meant, on its host; what looks at a machine, on the one that is
// meant.
std::string NextFilled(const std::string& command, const Finding& f, const std::map<std::string, std::string>& values) {
  const auto pid = values.find("{pid}");
  const auto host = values.find("{host}");
  if (command.find("ssh ") != command.npos) return command;
  std::string out = command;
  const size_t begin = out.find("<pid");
  const size_t end = begin == out.npos ? begin : out.find('>', begin);
  const bool filled = pid != values.end() && end != out.npos && out.find("<pid", end) == out.npos;
  if (filled) out = absl::StrCat(out.substr(0, begin), pid->second, out.substr(end + 1));
  const bool one_host = f.who().hosts_size() == 1 || (f.who().hosts_size() == 0 && f.who().ranks_size() == 1);
  if (!filled && (!one_host || begin != command.npos || !OfTheHost(out))) return out;
  if (host == values.end() || host->second.empty() || ShellWord(host->second)[0] == '<') return out;
  return OnHost(out, host->second);
}

}  // namespace

void FillCommands(const model::Job& job, Diagnosis* diagnosis) {
  for (Finding& f : *diagnosis->mutable_findings()) {
    const std::map<std::string, std::string> values = Values(job, f);
    f.mutable_next()->set_command(NextFilled(f.next().command(), f, values));
    const catalog::Entry* entry = catalog::FindEntry(f.cause().id());
    if (entry == nullptr) continue;
    f.mutable_cause()->set_name(entry->name());
    for (const catalog::Check& check : entry->confirm()) {
      Action& action = *f.add_confirm();
      action.set_text(check.what());
      action.set_command(Filled(check.command(), values));
      action.set_then(check.answer());
    }
    for (const catalog::Fix& fix : entry->fixes()) {
      Action& action = *f.add_fixes();
      action.set_text(fix.what());
      action.set_command(Filled(fix.command(), values));
      action.set_then(fix.cost());
    }
    for (const catalog::Verification& verification : entry->verify()) {
      Action& action = *f.add_verify();
      action.set_command(Filled(verification.command(), values));
      action.set_then(verification.expected());
    }
  }
}

}  // namespace ringscope::reasoning
