#include "bench/flight_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ringscope::bench {
namespace {

uint64_t Load(const flight::Word& word) { return word.load(std::memory_order_acquire); }

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace

FlightView::FlightView(const std::string& folder) {
  std::string path;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".flight") path = entry.path();
  }
  if (path.empty()) Fail("the plugin made no flight file in " + folder);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat st;
  void* memory = fd < 0 || fstat(fd, &st) != 0
                     ? MAP_FAILED
                     : mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ,
                            MAP_SHARED | MAP_POPULATE, fd, 0);
  if (fd >= 0) close(fd);
  if (memory == MAP_FAILED) Fail("cannot map " + path);
  header_ = static_cast<const flight::FileHeader*>(memory);
  if (std::memcmp(header_->magic, flight::kMagic, sizeof(flight::kMagic)) != 0 ||
      header_->version != flight::kVersion) {
    Fail(path + " is no flight file of this version");
  }
}

template <typename Row>
const Row* FlightView::Rows(flight::Table table) const {
  for (uint32_t i = 0; i < header_->table_count; ++i) {
    if (header_->tables[i].table == static_cast<uint32_t>(table)) {
      return reinterpret_cast<const Row*>(reinterpret_cast<const char*>(header_) +
                                          header_->tables[i].offset);
    }
  }
  Fail("the flight file lacks a table");
}

uint32_t FlightView::Count(flight::Table table) const {
  for (uint32_t i = 0; i < header_->table_count; ++i) {
    if (header_->tables[i].table == static_cast<uint32_t>(table)) return header_->tables[i].rows;
  }
  Fail("the flight file lacks a table");
}

uint64_t FlightView::Counter(flight::Counter which) const {
  return Load(Rows<flight::Word>(flight::Table::kCounters)[static_cast<uint32_t>(which)]);
}

const flight::CommRow* FlightView::Comm(uint64_t id) const {
  const auto* comms = Rows<flight::CommRow>(flight::Table::kComms);
  for (uint32_t i = 0; i < Count(flight::Table::kComms); ++i) {
    if (Load(comms[i].stamp) != 0 && Load(comms[i].comm_id) == id && Load(comms[i].finalized) == 0)
      return &comms[i];
  }
  return nullptr;
}

uint32_t FlightView::LivingComms() const {
  const auto* comms = Rows<flight::CommRow>(flight::Table::kComms);
  uint32_t living = 0;
  for (uint32_t i = 0; i < Count(flight::Table::kComms); ++i)
    living += Load(comms[i].stamp) != 0 && Load(comms[i].finalized) == 0;
  return living;
}

uint32_t FlightView::IndexOf(const flight::CommRow& comm) const {
  return static_cast<uint32_t>(&comm - Rows<flight::CommRow>(flight::Table::kComms));
}

uint64_t FlightView::OpsAfter(const flight::CommRow& comm, uint64_t position) const {
  const auto* ops = Rows<flight::OpRow>(flight::Table::kOps);
  const uint64_t ring = Load(comm.ring);
  uint64_t found = 0;
  for (uint32_t i = 0; i <= static_cast<uint32_t>(ring >> 32); ++i) {
    const flight::OpRow& op = ops[(static_cast<uint32_t>(ring) + i) % Count(flight::Table::kOps)];
    const uint64_t stamp = Load(op.stamp);
    found += stamp != 0 && (stamp >> 32 & 0xffff) == IndexOf(comm) &&
             (Load(op.position) & 0xffffffffff) > position;
  }
  return found;
}

uint64_t FlightView::Edges(const flight::CommRow& comm) const {
  const auto* edges = Rows<flight::EdgeRow>(flight::Table::kEdges);
  uint64_t found = 0;
  for (uint32_t i = 0; i < Count(flight::Table::kEdges); ++i) {
    const uint64_t stamp = Load(edges[i].stamp);
    found += stamp != 0 && (stamp >> 32 & 0xffff) == IndexOf(comm);
  }
  return found;
}

}  // namespace ringscope::bench
