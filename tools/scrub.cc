// ringscope scrub: inputs without the names of whose they are.
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tools/command.h"
#include "tools/scrub_session.h"

namespace ringscope::tools {
namespace {

bool Below(const std::string& path, const std::string& folder) {
  std::error_code error;
  const std::string inner = std::filesystem::weakly_canonical(path, error).string();
  const std::string outer = std::filesystem::weakly_canonical(folder, error).string();
  return inner.starts_with(outer + "/");
}

std::string Counted(const scrub::Masks& masks, scrub::Masks& addresses) {
  std::string text;
  const auto add = [&text](size_t n, const char* one, const char* many) {
    if (n > 0) text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + (n == 1 ? one : many);
  };
  using scrub::Kind;
  add(masks.Count(Kind::kHost), "host", "hosts");
  add(masks.Count(Kind::kDomain), "domain", "domains");
  add(addresses.addresses().count4() + addresses.addresses().count6(), "address", "addresses");
  add(masks.Count(Kind::kUser), "user", "users");
  add(masks.Count(Kind::kDirectory) + masks.Count(Kind::kFile), "part of a path", "parts of paths");
  add(masks.Count(Kind::kJob) + masks.Count(Kind::kJobNumber), "job", "jobs");
  add(masks.Count(Kind::kSecret), "secret", "secrets");
  add(masks.Count(Kind::kName), "word of yours", "words of yours");
  add(masks.Count(Kind::kUuid) + masks.Count(Kind::kSerial) + masks.Count(Kind::kMac), "serial or UUID", "serials and UUIDs");
  return text.empty() ? "nothing" : text;
}

int Run(const Arguments& arguments) {
  std::vector<std::string> paths = arguments.positional();
  if (paths.empty()) {
    if (isatty(STDIN_FILENO) != 0) {
      fprintf(stderr, "ringscope scrub: give files, directories, or - for standard input; `ringscope scrub --help` says more\n");
      return kUsage;
    }
    paths = {"-"};
  }
  const std::string out = arguments.Get("out"), map = arguments.Get("map");
  if (!map.empty() && !out.empty() && Below(map, out)) {
    fprintf(stderr, "ringscope scrub: --map=%s lies inside --out=%s; the map holds the originals, keep it elsewhere\n",
            map.c_str(), out.c_str());
    return kUsage;
  }
  ScrubSession session;
  if (!session.Open("scrub", map, arguments.Get("also"))) return kUsage;
  session.Learn(paths, out);
  scrub::Files& files = session.files();
  if (out.empty() && (files.size() > 1 || files.records())) {
    fprintf(stderr, "ringscope scrub: %s; give --out=DIR\n",
            files.records() ? "records are not written to standard output" : "several files");
    return kUsage;
  }
  absl::Status status;
  if (files.size() > 0) {
    status = out.empty() ? files.WriteOnly([](std::string_view bytes) {
      return fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()
                 ? absl::OkStatus()
                 : absl::UnavailableError("the output could not be written");
    })
                         : files.WriteAll(out);
  }
  if (!status.ok()) {
    fprintf(stderr, "ringscope scrub: %s\n", std::string(status.message()).c_str());
    return kInternal;
  }
  if (!session.Save()) return kInternal;
  for (const std::string& note : files.notes()) fprintf(stderr, "ringscope scrub: %s\n", session.Text(note).c_str());
  for (const std::string& problem : files.problems()) fprintf(stderr, "ringscope scrub: %s\n", problem.c_str());
  fprintf(stderr,
          "ringscope scrub: %d of %zu files written; masked: %s. Look through it before you give it away: what has no form and "
          "stands in no known place is not found\n",
          files.written(), files.size(), Counted(session.masks(), session.masks()).c_str());
  if (files.written() == 0) return files.missing() > 0 ? kNoInput : kDamaged;
  return files.problems().empty() ? kNothingWrong : kDamaged;
}

}  // namespace

const Command kScrub = {
    "scrub",
    "[PATH...|-] [--out=DIR] [--map=FILE] [--also=WORD,...]",
    "take host names, addresses, users, paths and secrets out of logs and records, so that they can be given away",
    "PATH is a file or a directory, as for diagnose: logs, tool output, compressed (gzip, zstd) or not, traces, flight files, "
    "streams,\n"
    "flight recorder dumps. The same name gets the same mask in all of them (host-1, user-2, secret-3); addresses of one net "
    "stay in\n"
    "one net; ranks, process ids, bus ids, hashes of communicators, interfaces, versions, ports and times stay. `ringscope "
    "diagnose`\n"
    "says the same of the masked files as of the originals, with masks for names.\n"
    "\n"
    "One text goes to standard output, everything else below --out, under masked names. What cannot be read is left out and "
    "named,\n"
    "never copied. Nothing leaves this machine: the files are written, sending them is yours.\n"
    "\n"
    "  ringscope scrub --out=for-ticket ringscope-traces/ slurm-4711.out\n"
    "  ringscope scrub job.log | less\n"
    "  ringscope scrub --map=$HOME/masks --out=more later.log     # the same masks as the run before\n"
    "\n"
    "Exit status 65: something was left out, or nothing was written. What is masked, and what no pattern finds: docs/scrub.md.\n",
    {{"out", {}, "", "where the masked files go; existing ones are never overwritten", "DIR"},
     {"map",
      {},
      "",
      "originals and masks, read and written (mode 0600), for equal masks in later runs. Keep it to yourself",
      "FILE"},
     {"also", {}, "", "words of your own that are to be masked wherever they stand", "WORD,..."}},
    Run};

}  // namespace ringscope::tools
