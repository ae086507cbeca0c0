// Names of a job's attempts ("incarnations"), as in the directories of their traces.
#ifndef RINGSCOPE_ANALYZER_MODEL_RUN_LABEL_H_
#define RINGSCOPE_ANALYZER_MODEL_RUN_LABEL_H_

#include <string>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::model {

// "train-7.0" as the recorder writes it into names of files: job id, with every character but
// letters, digits, '_' and '.' replaced by '_' ("nojob" without an id), and restart count.
std::string RunLabel(const std::string& job_id, uint32_t restart);

// The run that one of the given paths names by its last part, as the directory
// RINGSCOPE_DIR/<job>.<restart> does; empty when none or several do, or no record is of it.
// Whoever gives such a directory beside one where several jobs leave their flight files asks about
// that run, whichever is the newest.
std::string RunNamedBy(const std::vector<std::string>& paths, const std::vector<Record>& records);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_RUN_LABEL_H_
