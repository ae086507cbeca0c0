// The tables of nvidia-smi without arguments, of dmon and of pmon. Internal to analyzer/readers.
#ifndef RINGSCOPE_ANALYZER_READERS_SMI_TABLE_H_
#define RINGSCOPE_ANALYZER_READERS_SMI_TABLE_H_

#include <string>
#include <vector>

#include "analyzer/readers/gpu_snapshots.h"

namespace ringscope::ingest {

class SmiTable {
 public:
  SmiTable(const FileContext& context, GpuSnapshots* out) : context_(context), out_(out) {}
  // False when the line belongs to no such table.
  bool Line(const TextLine& line);

 private:
  bool Banner(const TextLine& line);
  bool GpuRow(const std::vector<std::string_view>& cells, const TextLine& line);
  bool ValueRow(const std::vector<std::string_view>& cells, const TextLine& line);
  bool ProcessRow(std::string_view cell, const TextLine& line);
  bool Dmon(const TextLine& line);

  const FileContext& context_;
  GpuSnapshots* out_;
  bool row_open_ = false;   // the next row holds the values of the GPU above
  bool processes_ = false;  // the list of processes has begun
  std::vector<std::string> dmon_;
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_SMI_TABLE_H_
