#include "tests/protocol/model.h"

#include <setjmp.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <vector>

namespace ringscope::protocol {
namespace {

constexpr size_t kMostWords = 64;
constexpr int kReader = kMostThreads;
constexpr int kMostSignals = 8;
constexpr size_t kStackBytes = 128 << 10;

[[noreturn]] void Fail(const char* why) {
  std::fprintf(stderr, "protocol: %s\n", why);
  std::exit(2);
}

// The newest message of each word that a thread, or whoever takes a message, knows of.
struct View {
  std::array<uint8_t, kMostWords> at{};
  void Join(const View& o) {
    for (size_t i = 0; i < kMostWords; ++i) at[i] = std::max(at[i], o.at[i]);
  }
  bool Within(const View& o) const {
    for (size_t i = 0; i < kMostWords; ++i) {
      if (at[i] > o.at[i]) return false;
    }
    return true;
  }
};

struct Message {
  uint64_t value = 0;
  uint32_t tag = 0;
  View view;
};

struct Thread {
  View known, to_acquire, released;
  uint32_t tag = 0;
  uint64_t steps = 0, history = 0;  // operations so far; what its loads took: together they say where it is
  int waits_for = -1;
  bool done = false, begun = false;
  ucontext_t context;  // for the first entry; then `at`, which needs no system call
  jmp_buf at;
  std::unique_ptr<char[]> stack;
};

// A state, by 128 bits of hash: two different ones meet with a probability of 10^-24 for a million of them.
struct Key {
  uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;
  void Add(uint64_t word) {
    a = (a ^ word) * 0xff51afd7ed558ccdu;
    a ^= a >> 32;
    b = (b + word) * 0xc4ceb9fe1a85ec53u;
    b ^= b >> 29;
  }
  void Add(const View& view) {
    uint64_t words[kMostWords / 8];
    std::memcpy(words, view.at.data(), sizeof(words));
    for (const uint64_t word : words) Add(word);
  }
  bool operator==(const Key& o) const { return a == o.a && b == o.b; }
};
struct KeyHash {
  size_t operator()(const Key& key) const { return key.a ^ key.b; }
};

// Depth-first search over choices: the same trail is walked again up to the last choice that has an alternative.
class Trail {
 public:
  void Clear() { choices_.clear(); }
  void Restart() { at_ = 0; }
  // Nothing beyond here was chosen before.
  bool AtEnd() const { return at_ == choices_.size(); }
  size_t Choose(size_t count) {
    if (count == 1) return 0;
    if (at_ == choices_.size()) choices_.push_back({0, count});
    if (choices_[at_].count != count) Fail("an execution cannot be repeated");
    return choices_[at_++].chosen;
  }
  bool Next() {
    while (!choices_.empty() && choices_.back().chosen + 1 == choices_.back().count) choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().chosen;
    return true;
  }

 private:
  struct Choice {
    size_t chosen, count;
  };
  std::vector<Choice> choices_;
  size_t at_ = 0;
};

class Explorer {
 public:
  Explorer(const Scenario& scenario, const Mutant& mutant) : scenario_(scenario), mutant_(mutant) {
    for (Thread& t : threads_) t.stack = std::make_unique<char[]>(kStackBytes);
  }
  Result Run();

  // Calls of the code under test.
  uint64_t Load(const void* at, Order order, Site site);
  void Store(void* at, uint64_t value, Order order, Site site);
  bool Exchange(void* at, uint64_t* expected, uint64_t desired, Order order, Site site);
  void Fence(Order order, Site site);
  void Watch(void* first, size_t words);
  void Focus(const void* word) { focus_[Find(word)] = true; }
  void Tag(uint32_t tag) { Me().tag = tag; }
  uint32_t TagRead(const void* word) const { return tag_read_[Find(word)]; }
  void Signal(int n);
  void Await(int n);
  uint64_t Time() { return 1000 + 1000 * uint64_t{running_ >= 0 ? Me().tag : 0}; }
  void Body();

 private:
  Thread& Me() { return threads_[running_]; }
  size_t Find(const void* at) const;
  void Resume(int thread);
  bool IsFirst(const void* at) const {
    for (const auto& range : ranges_) {
      if (range.first == at) return true;
    }
    return false;
  }
  void Leave() {
    if (_setjmp(Me().at) == 0) _longjmp(main_, 1);
  }
  // A word that several writers touch: who goes next is a choice.
  void Visible(size_t word);
  bool RunWriters();  // false: it came to a state from which all was tried
  void RunReader();
  Order Weaken(Order order, Site site);
  void Push(size_t word, uint64_t value, const View& view);
  bool Is(Site site, Weakening weakening) const {
    return mutant_.weakening == weakening && mutant_.line == site.line && mutant_.file == Short(site);
  }
  void Note(Site site, Weakening weakening) {
    result_.mutants.insert({Short(site), site.line, weakening});
  }
  static std::string Short(Site site) {
    const char* at = std::strstr(site.file, "recorder/");
    return at ? at : site.file;
  }
  Key MemoryKey() const;
  Key StateKey() const;
  void Took(size_t choice) { Me().history = (Me().history ^ (choice + 1)) * 0x9e3779b97f4a7c15u; }

  const Scenario& scenario_;
  const Mutant& mutant_;
  Result result_;
  Trail writers_, reader_;
  Thread threads_[kMostThreads + 1];
  ucontext_t begin_;
  jmp_buf main_;
  int running_ = -1;
  std::vector<std::pair<const char*, size_t>> ranges_;  // first byte, words
  std::vector<std::vector<Message>> memory_;
  uint32_t touched_by_[kMostWords] = {};  // bit per writer, of all executions so far
  bool shared_grew_ = false, aborted_ = false, accepted_ = false;
  bool focus_[kMostWords + 1] = {};
  uint32_t tag_read_[kMostWords + 1] = {};
  size_t taken_[kMostWords] = {};  // message that the reader took last
  int loads_[kMostWords] = {};     // of the reader
  bool signalled_[kMostSignals] = {};
  View signal_view_[kMostSignals];
  std::unordered_set<Key, KeyHash> seen_, states_;
};

Explorer* g_explorer = nullptr;
void FiberMain() { g_explorer->Body(); }

// Its fiber begins anew.
void Prepare(Thread& thread) {
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, FiberMain, 0);
  thread.begun = thread.done = false;
}

size_t Explorer::Find(const void* at) const {
  size_t before = 0;
  for (const auto& [first, words] : ranges_) {
    const auto offset = static_cast<size_t>(static_cast<const char*>(at) - first);
    if (static_cast<const char*>(at) >= first && offset < words * 8) return before + offset / 8;
    before += words;
  }
  return kMostWords;
}

void Explorer::Watch(void* first, size_t words) {
  std::memset(first, 0, words * 8);
  ranges_.push_back({static_cast<const char*>(first), words});
  memory_.resize(memory_.size() + words, std::vector<Message>(1));
  if (memory_.size() > kMostWords) Fail("too many words");
}

void Explorer::Body() {
  const int me = running_;
  if (me == kReader) {
    accepted_ = scenario_.reader();
  } else {
    scenario_.writer[me]();
  }
  threads_[me].done = true;
  _longjmp(main_, 1);
}

void Explorer::Resume(int thread) {
  running_ = thread;
  if (_setjmp(main_) == 0) {
    if (threads_[thread].begun) _longjmp(threads_[thread].at, 1);
    threads_[thread].begun = true;
    swapcontext(&begin_, &threads_[thread].context);
  }
  running_ = -1;
}

void Explorer::Visible(size_t word) {
  if (running_ == kReader) return;
  ++Me().steps;
  const uint32_t before = touched_by_[word], now = before | 1u << running_;
  touched_by_[word] = now;
  if (__builtin_popcount(now) < 2) return;
  if (before != now && __builtin_popcount(before) == 1) shared_grew_ = true;
  Leave();
}

Order Explorer::Weaken(Order order, Site site) {
  if (order.acquire) {
    Note(site, Weakening::kNoAcquire);
    if (Is(site, Weakening::kNoAcquire)) order.acquire = false;
  }
  if (order.release) {
    Note(site, Weakening::kNoRelease);
    if (Is(site, Weakening::kNoRelease)) order.release = false;
  }
  return order;
}

uint64_t Explorer::Load(const void* at, Order order, Site site) {
  const size_t word = running_ < 0 ? kMostWords : Find(at);
  if (word == kMostWords) return *static_cast<const uint64_t*>(at);
  Visible(word);
  order = Weaken(order, site);
  Thread& me = Me();
  const std::vector<Message>& messages = memory_[word];
  const size_t oldest = me.known.at[word];
  size_t take;
  const bool reading = running_ == kReader;
  // A reader looks at a stamp, takes the other words, looks at the stamp again. What follows is another attempt, like any
  // other.
  if (reading && ++loads_[word] > 2) {
    aborted_ = true;
    Leave();
  }
  const bool second_look = reading && loads_[word] == 2;
  if (second_look) Note(site, Weakening::kNoCheck);
  if (second_look && Is(site, Weakening::kNoCheck)) {
    take = taken_[word];
  } else if (reading && !focus_[word]) {
    // The least constraining ones: whatever can be seen after another one can be seen after one of these.
    std::vector<size_t> least;
    for (size_t i = oldest; i < messages.size(); ++i) {
      bool smallest = true;
      for (size_t k = oldest; k < messages.size() && smallest; ++k) {
        if (k == i || !messages[k].view.Within(messages[i].view)) continue;
        smallest = !(messages[i].view.Within(messages[k].view) ? k < i : true);
      }
      if (smallest) least.push_back(i);
    }
    take = least[reader_.Choose(least.size())];
  } else {
    take = oldest + (reading ? reader_ : writers_).Choose(messages.size() - oldest);
  }
  Took(take);
  const Message& message = messages[take];
  me.known.at[word] = static_cast<uint8_t>(take);
  me.to_acquire.Join(message.view);
  if (order.acquire) me.known.Join(message.view);
  if (reading) {
    tag_read_[word] = message.tag;
    taken_[word] = take;
  }
  return message.value;
}

void Explorer::Push(size_t word, uint64_t value, const View& view) {
  Thread& me = Me();
  Message message;
  message.value = value;
  message.tag = me.tag;
  message.view = view;
  const size_t index = memory_[word].size();
  if (index > 250) {
    result_.violation = "it does not end";
    Leave();
  }
  message.view.at[word] = static_cast<uint8_t>(index);
  me.known.at[word] = static_cast<uint8_t>(index);
  memory_[word].push_back(message);
}

void Explorer::Store(void* at, uint64_t value, Order order, Site site) {
  const size_t word = running_ < 0 ? kMostWords : Find(at);
  if (word == kMostWords) {
    *static_cast<uint64_t*>(at) = value;
    return;
  }
  if (running_ == kReader) Fail("a reader stores into a row");
  Visible(word);
  order = Weaken(order, site);
  if (IsFirst(at) && value == 0) {
    Note(site, Weakening::kNoStore);
    if (Is(site, Weakening::kNoStore)) return;
  }
  Push(word, value, order.release ? Me().known : Me().released);
}

bool Explorer::Exchange(void* at, uint64_t* expected, uint64_t desired, Order order, Site site) {
  const size_t word = running_ < 0 ? kMostWords : Find(at);
  if (word == kMostWords) {
    auto* plain = static_cast<uint64_t*>(at);
    if (*plain == *expected) {
      *plain = desired;
      return true;
    }
    *expected = *plain;
    return false;
  }
  if (running_ == kReader) Fail("a reader stores into a row");
  Visible(word);
  order = Weaken(order, site);
  Thread& me = Me();
  // It takes the newest message, as an exchange must; or fails by one that is known to be older and has another value.
  std::vector<size_t> possible;
  const size_t newest = memory_[word].size() - 1;
  for (size_t i = me.known.at[word]; i <= newest; ++i) {
    if (i == newest || memory_[word][i].value != *expected) possible.push_back(i);
  }
  const size_t take = possible[writers_.Choose(possible.size())];
  Took(take);
  const Message message = memory_[word][take];
  me.known.at[word] = static_cast<uint8_t>(take);
  me.to_acquire.Join(message.view);
  if (order.acquire) me.known.Join(message.view);
  if (message.value != *expected) {
    *expected = message.value;
    return false;
  }
  View view = order.release ? me.known : me.released;
  view.Join(message.view);  // an exchange carries on the release of the store that it took
  if (desired == 0) {
    Note(site, Weakening::kNoStore);
    if (Is(site, Weakening::kNoStore)) return true;
  }
  Push(word, desired, view);
  return true;
}

void Explorer::Fence(Order order, Site site) {
  if (running_ < 0) return;
  order = Weaken(order, site);
  Thread& me = Me();
  if (order.acquire) me.known.Join(me.to_acquire);
  if (order.release) me.released = me.known;
}

void Explorer::Signal(int n) {
  ++Me().steps;
  Leave();
  signalled_[n] = true;
  signal_view_[n] = Me().known;
}

void Explorer::Await(int n) {
  ++Me().steps;
  Me().waits_for = n;
  Leave();
  Me().waits_for = -1;
  Me().known.Join(signal_view_[n]);
}

bool Explorer::RunWriters() {
  ranges_.clear();
  memory_.clear();
  std::fill(std::begin(signalled_), std::end(signalled_), false);
  running_ = -1;
  scenario_.reset();
  for (int t = 0; t < scenario_.writers; ++t) {
    Thread& thread = threads_[t];
    thread.known = thread.to_acquire = thread.released = View();
    thread.tag = 0;
    thread.steps = thread.history = 0;
    thread.waits_for = -1;
    Prepare(thread);
    Resume(t);  // up to its first step that others may see
    if (!result_.violation.empty()) return false;
  }
  for (;;) {
    std::vector<int> able;
    bool all_done = true;
    for (int t = 0; t < scenario_.writers; ++t) {
      const Thread& thread = threads_[t];
      all_done &= thread.done;
      if (!thread.done && (thread.waits_for < 0 || signalled_[thread.waits_for])) able.push_back(t);
    }
    if (all_done) break;
    if (able.empty()) Fail("the writers wait for each other");
    if (able.size() > 1 && writers_.AtEnd() && !states_.insert(StateKey()).second) return false;
    const int next = able[writers_.Choose(able.size())];
    Resume(next);
    if (!result_.violation.empty()) return false;
  }
  return true;
}

// Where everything is between two steps. The plain memory of the code under test follows from it: each word there has one
// writer, and where a writer is follows from its steps and from what it read.
Key Explorer::StateKey() const {
  Key key = MemoryKey();
  for (int t = 0; t < scenario_.writers; ++t) {
    const Thread& thread = threads_[t];
    key.Add(thread.steps);
    key.Add(thread.history);
    for (const View* view : {&thread.known, &thread.to_acquire, &thread.released}) key.Add(*view);
  }
  for (int n = 0; n < kMostSignals; ++n) {
    key.Add(signalled_[n]);
    if (signalled_[n]) key.Add(signal_view_[n]);
  }
  return key;
}

Key Explorer::MemoryKey() const {
  Key key;
  for (const auto& messages : memory_) {
    key.Add(messages.size());
    for (const Message& m : messages) {
      key.Add(m.value);
      key.Add(m.tag);
      key.Add(m.view);
    }
  }
  return key;
}

void Explorer::RunReader() {
  for (size_t which = 0; which < scenario_.focuses; ++which) {
    std::fill(std::begin(focus_), std::end(focus_), false);
    scenario_.focus(which);
    reader_.Clear();
    do {
      reader_.Restart();
      Thread& thread = threads_[kReader];
      thread.known = thread.to_acquire = thread.released = View();
      std::fill(std::begin(tag_read_), std::end(tag_read_), kNoTag);
      std::fill(std::begin(loads_), std::end(loads_), 0);
      aborted_ = accepted_ = false;
      Prepare(thread);
      Resume(kReader);
      ++result_.readings;
      if (aborted_ || !accepted_) continue;
      ++result_.accepted;
      if (const char* wrong = scenario_.judge()) {
        result_.violation = wrong;
        return;
      }
    } while (reader_.Next());
  }
}

Result Explorer::Run() {
  g_explorer = this;
  do {
    shared_grew_ = false;
    writers_.Clear();
    seen_.clear();
    states_.clear();
    result_.executions = result_.memories = result_.readings = result_.accepted = 0;
    do {
      writers_.Restart();
      const bool whole = RunWriters();
      if (!result_.violation.empty()) return result_;
      if (shared_grew_) break;  // more places to switch at than were known: from the beginning
      if (!whole) continue;
      ++result_.executions;
      if (!seen_.insert(MemoryKey()).second) continue;
      ++result_.memories;
      RunReader();
      if (!result_.violation.empty()) return result_;
    } while (writers_.Next());
  } while (shared_grew_);
  return result_;
}

}  // namespace

const char* NameOf(Weakening weakening) {
  switch (weakening) {
    case Weakening::kNone:
      break;
    case Weakening::kNoAcquire:
      return "acquire dropped";
    case Weakening::kNoRelease:
      return "release dropped";
    case Weakening::kNoStore:
      return "stamp not cleared";
    case Weakening::kNoCheck:
      return "second look dropped";
  }
  return "as it is";
}

Result Explore(const Scenario& scenario, const Mutant& mutant) {
  return Explorer(scenario, mutant).Run();
}

uint64_t OnLoad(const void* at, Order order, Site site) { return g_explorer->Load(at, order, site); }
void OnStore(void* at, uint64_t value, Order order, Site site) {
  g_explorer->Store(at, value, order, site);
}
bool OnExchange(void* at, uint64_t* expected, uint64_t desired, Order order, Site site) {
  return g_explorer->Exchange(at, expected, desired, order, site);
}
void OnFence(Order order, Site site) { g_explorer->Fence(order, site); }
void Watch(void* first, size_t words) { g_explorer->Watch(first, words); }
void Focus(const void* word) { g_explorer->Focus(word); }
void Tag(uint32_t tag) { g_explorer->Tag(tag); }
uint32_t TagRead(const void* word) { return g_explorer->TagRead(word); }
void Signal(int n) { g_explorer->Signal(n); }
void Await(int n) { g_explorer->Await(n); }

}  // namespace ringscope::protocol

// The recorder's clock, by the name that the build gives it: one value a tag, so that executions can be repeated.
extern "C" int ringscope_model_clock(clockid_t, timespec* time) {
  const uint64_t now = ringscope::protocol::g_explorer->Time();
  time->tv_sec = 0;
  time->tv_nsec = static_cast<long>(now);
  return 0;
}
