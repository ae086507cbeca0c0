// A diagnosis as a sheet of short sections, before anybody decides whether it goes to a terminal or into a ticket.
#ifndef RINGSCOPE_ANALYZER_REPORT_SHEET_H_
#define RINGSCOPE_ANALYZER_REPORT_SHEET_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::report {

struct Line {
  enum Kind {
    kText,
    kBullet,   // `key` in place of a dash: "2."; empty: a dash
    kPair,     // "who", "rank 5 on host3"
    kCommand,  // for a shell, never wrapped
    kState,    // `key`: ranks; their state
    kQuiet,    // beside the point: counts, names of files
  };
  Kind kind = kText;
  std::string key;
  std::string text;
};

struct Section {
  std::string name;     // "evidence": what is said to be left out
  std::string heading;  // empty: none
  std::vector<Line> lines;
  // Where there is no room for all: sections of a higher number lose their last lines first, each down to `keep`. 0: stays whole.
  int dispensable = 0;
  size_t keep = 0;
};

struct Sheet {
  State::Value state = State::unknown;
  std::string title;
  std::vector<Section> sections;
};

struct SheetOptions {
  bool all = false;        // the catalogue's checks and fixes too
  int communicators = 12;  // shown at most; those with something open first
};
Sheet MakeSheet(const Diagnosis& diagnosis, const model::Job& job, const SheetOptions& options);

// The sections of the finding that leads, and what else is known of the communicators.
void AddFinding(const Finding& finding, bool all, Sheet* sheet);                          // sheet_finding.cc
void AddCommunicators(const model::Job& job, const SheetOptions& options, Sheet* sheet);  // sheet_communicators.cc

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_SHEET_H_
