// What the sections of the report share. Internal to analyzer/report/html/.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_CONTEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_CONTEXT_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/report/html/report.h"
#include "analyzer/report/html/writer.h"

namespace ringscope::report::html {

struct Context {
  Context(const Diagnosis& diagnosis, const model::Job& job, const Lines& lines);
  const Diagnosis& d;
  const model::Job& job;
  const Lines& lines;
  const Finding* first = nullptr;                   // the initiating finding; nullptr where none speaks
  std::set<int> accused;                            // its job ranks, and those on its edges' ends
  std::set<int> named;                              // its job ranks
  std::set<int> waiting;                            // its collateral
  std::set<std::pair<int, int>> edges;              // its edges, job ranks
  std::map<std::pair<int, int>, int> other_edges;   // edges of the other findings -> index of the finding
  const model::Communicator* stalled = nullptr;     // the one that the first finding is about, else one with something open
  std::map<int, const model::Process*> process_of;  // by job rank
  std::string host;                                 // where the fault lies; empty when not known

  // The finding's host, or its first rank's.
  std::string HostOf(const Finding& finding) const;
};

// One part of the page. A section without a body is left out.
struct Section {
  const char* id;
  const char* name;  // in the page's list of parts
  const char* title;
  Writer body;
};

Writer VerdictSection(const Context& c);
Section RingSection(const Context& c);
Section ProgressSection(const Context& c);
Section TimelineSection(const Context& c);
Section CountersSection(const Context& c);
Section EvidenceSection(const Context& c);
Section FabricSection(const Context& c);
Section FindingsSection(const Context& c);
Section CatalogueSection(const Context& c);
Section InputsSection(const Context& c);

// "alarm", "warn", "good", "info": the class of a chip.
std::string_view ToneOf(State::Value state);
std::string_view ToneOf(Confidence::Value confidence);
void Chip(std::string_view tone, std::string_view text, Writer* out);

// A command of the catalogue with what the finding knows in place of {host}, {gpu}, {bus_id}, {rank}, {pid}. Only values that a
// shell takes as they are; the rest stays to be filled in.
std::string Filled(std::string_view command, const Finding& finding, const Context& c);

// Tools' outputs, oldest first: by their stamps where these compare, else by what their names say ("before", "after").
std::vector<const model::HardwareSnapshot*> SnapshotsInOrder(const model::Job& job);

// How many lines stand before and behind a cited one.
inline constexpr uint32_t kAround = 3;

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_CONTEXT_H_
