#include "analyzer/model/run_label.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <set>

namespace ringscope::model {

std::string RunLabel(const std::string& job_id, uint32_t restart) {
  constexpr size_t kMost = 64;  // recorder/flight/text.h: AddName
  std::string name = job_id.empty() ? "nojob" : job_id.substr(0, kMost);
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!absl::ascii_isalnum(c) && c != '_' && (c != '.' || i == 0)) name[i] = '_';
  }
  return absl::StrCat(name, ".", restart);
}

std::string RunNamedBy(const std::vector<std::string>& paths, const std::vector<Record>& records) {
  std::set<std::string> runs, named;
  for (const Record& r : records) {
    if (r.trace.has_process())
      runs.insert(RunLabel(r.trace.process().job_id(), r.trace.process().restart_count()));
  }
  for (std::string path : paths) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const std::string last = path.substr(path.rfind('/') + 1);
    if (runs.count(last) > 0) named.insert(last);
  }
  return named.size() == 1 ? *named.begin() : "";
}

}  // namespace ringscope::model
