// Time stamps at the start of log lines.
#ifndef RINGSCOPE_ANALYZER_INGEST_TIME_STAMP_H_
#define RINGSCOPE_ANALYZER_INGEST_TIME_STAMP_H_

#include <string_view>

#include "analyzer/ingest/scan.h"
#include "analyzer/model/evidence_place.h"

namespace ringscope::ingest {

// Each takes its form from the start of `scan` and sets `stamp`; false, and nothing taken, when it is not there.
// "2024-08-23T22:22:51.874Z", "2024-08-23 22:22:51,874", "2024-08-23T22:22:51+02:00", "2024/08/23 22:22:51".
bool TakeDateTime(Scan* scan, model::Stamp* stamp);
// "22:22:51", "22:22:51.874".
bool TakeTimeOfDay(Scan* scan, model::Stamp* stamp);
// "Aug 23 22:22:51", "Aug  3 22:22:51.123456": syslog; no year.
bool TakeSyslogTime(Scan* scan, model::Stamp* stamp);
// Puts a time of day on a date whose year is unknown, as syslog's stamps are kept; false when there is no such day.
bool DateWithoutYear(int64_t month, int64_t day, model::Stamp* of_day);
// "[  123.456789]", "[Tue Mar  5 12:00:00 2024]", "[  +0.000005]", "[Mar 5 12:00]" (the two last without a stamp): dmesg.
bool TakeDmesgTime(Scan* scan, model::Stamp* stamp);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_TIME_STAMP_H_
