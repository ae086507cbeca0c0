#include "analyzer/readers/stack_lines.h"

#include <re2/re2.h>

namespace ringscope::ingest {
namespace {

constexpr size_t kMostFrame = 300;  // bytes of a frame's text; C++ names go on for pages
constexpr size_t kMostPlaces = 1 << 16;

// Names become part of findings, which are UTF-8.
void Tidy(std::string* text) {
  if (text->size() > kMostFrame) text->resize(kMostFrame);
  for (char& c : *text) {
    if (c < 0x20 || c == 0x7f) c = static_cast<unsigned char>(c) >= 0x80 ? '?' : ' ';
  }
}

}  // namespace

bool TakeStackHeading(std::string_view text, StackHeading* heading) {
  static const RE2& shape =
      *new RE2(R"((?i)[\s=#*>\[-]*(?:(?:global[ _])?rank[ _:=#-]*(\d{1,6}))?[\])]*[\s,;:(]*(?:pid[ :=]*(\d{1,9}))?[\s:=#*\])-]*)"
               R"((?:(?:stack|main thread|dump|py-spy)[\s:=#*-]*)?)");
  std::string rank, pid;
  if (!RE2::FullMatch(re2::StringPiece(text.data(), text.size()), shape, &rank, &pid) || (rank.empty() && pid.empty())) return false;
  heading->rank = rank.empty() ? -1 : std::stoi(rank);
  heading->pid = pid.empty() ? -1 : std::stoll(pid);
  return true;
}

void StackBuilder::Heading(const TextLine& line, const StackHeading& heading) {
  Place& place = places_[KeyOf(line)];
  place = {};
  place.rank = heading.rank;
  place.pid = heading.pid;
}

void StackBuilder::Process(const TextLine& line, int64_t pid, std::string command) {
  Place& place = places_[KeyOf(line)];
  // A heading names the rank of the process that follows it, and of no other.
  if (place.process >= 0) place.rank = -1;
  place.process = -1;
  place.open = false;
  place.pid = pid;
  Tidy(&command);
  place.command = std::move(command);
}

void StackBuilder::Fatal(const TextLine& line, std::string what) {
  Place& place = places_[KeyOf(line)];
  place.process = -1;
  place.open = false;
  Tidy(&what);
  place.fatal = std::move(what);
}

model::StackThread* StackBuilder::Thread(const TextLine& line) {
  if (places_.size() > kMostPlaces) return nullptr;
  Place& place = places_[KeyOf(line)];
  auto& processes = context_.evidence->stacks.processes;
  if (place.process < 0) {
    place.process = static_cast<int>(processes.size());
    model::StackProcess& process = processes.emplace_back();
    process.tool = tool_;
    process.command = place.command;
    process.fatal = place.fatal;
    process.by = line.by;
    if (place.rank >= 0) process.by.rank = place.rank;
    if (place.pid >= 0) process.by.pid = place.pid;
    process.where = line.where;
    place.fatal.clear();
  }
  place.open = true;
  model::StackThread& thread = processes[place.process].threads.emplace_back();
  thread.where = line.where;
  return &thread;
}

bool StackBuilder::Frame(const TextLine& line, model::StackFrame frame) {
  const auto it = places_.find(KeyOf(line));
  if (it == places_.end() || !it->second.open) return false;
  frame.where = line.where;
  for (std::string* text : {&frame.function, &frame.file, &frame.module, &frame.text}) Tidy(text);
  context_.evidence->stacks.processes[it->second.process].threads.back().frames.push_back(std::move(frame));
  return true;
}

bool StackBuilder::Open(const TextLine& line) const {
  const auto it = places_.find(KeyOf(line));
  return it != places_.end() && it->second.open;
}

void StackBuilder::Close(const TextLine& line) {
  if (const auto it = places_.find(KeyOf(line)); it != places_.end()) it->second.open = false;
}

model::StackProcess* StackBuilder::Current(const TextLine& line) {
  const auto it = places_.find(KeyOf(line));
  if (it == places_.end() || it->second.process < 0) return nullptr;
  return &context_.evidence->stacks.processes[it->second.process];
}

}  // namespace ringscope::ingest
