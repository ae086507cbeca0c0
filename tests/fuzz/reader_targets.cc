// One target for each reader of text, and one for the signatures: whatever bytes come, all readers, the joining of speakers, the
// finders and the reports survive them. A target differs from the next in its seeds only: the texts in which its reader finds
// something.
#include <absl/strings/ascii.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/text_reader.h"
#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/report/json.h"
#include "analyzer/report/text.h"
#include "catalog/catalog.h"
#include "tests/fuzz/targets.h"

namespace ringscope::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSeedBytes = 40000, kMostSeeds = 12;

// "nvidia-smi topo -m" -> "text-nvidia-smi-topo-m".
std::string TargetName(const std::string& reader) {
  std::string name = "text-";
  for (const char c : reader) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c));
    if (plain) name += absl::ascii_tolower(static_cast<unsigned char>(c));
    if (!plain && name.back() != '-') name += '-';
  }
  while (name.back() == '-') name.pop_back();
  return name;
}

void Run(std::string_view bytes) {
  model::Evidence evidence;
  std::vector<model::Record> records;
  (void)ingest::ReadTextBytes("input", bytes, &evidence, &records);
  model::ResolveSpeakers(&evidence);
  model::Job job = model::BuildJob(std::move(records));
  job.evidence = std::move(evidence);
  const Diagnosis diagnosis = reasoning::Diagnose(job);
  if (report::RenderText(diagnosis, job, {}).empty() || !report::ToJson(diagnosis).ok()) abort();
}

std::string Slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return std::move(bytes).str().substr(0, kMostSeedBytes);
}

// Reader name -> texts that it reads, of those that lie in the tree.
const std::map<std::string, std::vector<std::string>>& Found() {
  static const auto& found = *[] {
    auto* all = new std::map<std::string, std::vector<std::string>>;
    std::vector<fs::path> paths;
    for (const char* folder : {"/tests/fuzz/seeds", "/tests/corpus/cases"}) {
      if (!fs::exists(std::string(RINGSCOPE_SOURCE_DIR) + folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(std::string(RINGSCOPE_SOURCE_DIR) + folder)) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      const std::string bytes = Slurp(path);
      model::Evidence evidence;
      std::vector<model::Record> records;
      (void)ingest::ReadTextBytes(path.string(), bytes, &evidence, &records);
      for (const std::string& reader : evidence.files[0].readers) {
        auto& seeds = (*all)[reader];
        if (seeds.size() < kMostSeeds) seeds.push_back(bytes);
      }
    }
    return all;
  }();
  return found;
}

std::vector<std::string> Examples() {
  std::vector<std::string> seeds(8);
  size_t n = 0;
  for (const auto& signature : catalog::Signatures().signature()) {
    for (const auto& example : signature.examples()) seeds[n++ % seeds.size()] += example + "\n";
  }
  return seeds;
}

}  // namespace

std::vector<Target> ReaderTargets() {
  std::vector<std::string> readers;
  for (const auto& reader : ingest::LineReaders()) readers.push_back(reader.name);
  for (const auto& reader : ingest::DocumentReaders()) readers.push_back(reader.name);
  std::vector<Target> targets{{"text-signatures", Run, Examples}};
  for (const std::string& reader : readers) {
    targets.push_back({TargetName(reader), Run, [reader] {
                         const auto it = Found().find(reader);
                         return it == Found().end() ? std::vector<std::string>() : it->second;
                       }});
  }
  return targets;
}

}  // namespace ringscope::fuzz
