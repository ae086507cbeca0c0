#include "tests/sim/setup/faults_text.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/sim/setup/number.h"

namespace ringscope::sim {
namespace {

struct Kind {
  const char* name;
  const char* when;   // which of op, init, at may say when
  const char* keys;   // what it takes besides
  const char* needs;  // of those, what it cannot do without
};
constexpr Kind kKinds[] = {
    {"absent", "op init", "", ""},
    {"kill", "op init at", "", ""},
    {"stop", "op init at", "", ""},
    {"exit", "op init at", "code", ""},
    {"segv", "op init at", "", ""},
    {"late", "op init", "ms", "ms"},
    {"skip", "op", "", ""},
    {"twice", "op", "", ""},
    {"swap", "op", "", ""},
    {"wide", "op", "", ""},
    {"half", "op", "", ""},
    {"type", "op", "", ""},
    {"gather", "op", "", ""},
    {"root", "op", "", ""},
    {"queued", "op", "", ""},
    {"stuck", "op", "", ""},
    {"sticky", "op", "error", ""},
    {"lanes", "op init at", "gpu link left to", ""},
    {"nvlink", "op init at", "gpu link left to", ""},
    {"lost", "op init at", "gpu", ""},
    {"port", "op init at", "nic ms", ""},
    {"edge_stalled", "op init at", "to", ""},
    {"edge_drop", "op init at", "to", ""},
    {"edge_slow", "op init at", "to ms", ""},
    {"proxy", "op init at", "", ""},
    {"shm", "init", "", ""},
};

bool Has(const std::string& words, const std::string& word) {
  std::istringstream all(words);
  for (std::string one; all >> one;) {
    if (one == word) return true;
  }
  return false;
}

const Kind* Find(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

std::string AllKinds() {
  std::string all;
  for (const Kind& kind : kKinds) all += (all.empty() ? "" : ", ") + std::string(kind.name);
  return all;
}

struct Number {
  const char* key;
  int PlannedFault::*field;
  int least, most;
};
constexpr Number kNumbers[] = {
    {"rank", &PlannedFault::rank, 0, 65535}, {"ms", &PlannedFault::ms, 0, 3600000},   {"gpu", &PlannedFault::gpu, 0, 63},
    {"link", &PlannedFault::link, 0, 17},    {"left", &PlannedFault::left, 0, 18},    {"nic", &PlannedFault::nic, 0, 63},
    {"to", &PlannedFault::to, 0, 65535},     {"error", &PlannedFault::error, 1, 999}, {"code", &PlannedFault::code, 0, 255},
};
constexpr const char* kKeys = "rank, op, init, at, do, ms, gpu, link, left, nic, to, error, code";

// One fault; what is wrong with it, or "".
std::string Read(const std::string& text, PlannedFault* fault) {
  std::set<std::string> given;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
    const std::string shown = Shown(word);
    if (equals == word.npos || value.empty()) return "\"" + shown + "\" is not of the form key=value; keys are " + kKeys;
    if (!given.insert(key).second) return "\"" + Shown(key) + "\" is given twice";
    if (key == "op") {
      fault->onwards = value.back() == '+';
      const auto op = Whole(value.substr(0, value.size() - (fault->onwards ? 1 : 0)), 1, 1000000000);
      if (!op) return shown + ": operations are counted from 1; 10+ is the tenth and all that follow";
      fault->op = static_cast<uint64_t>(*op);
    } else if (key == "init") {
      const auto init = Whole(value, 1, 1000);
      if (!init) return shown + ": communicators are counted from 1, to 1000";
      fault->init = static_cast<uint64_t>(*init);
    } else if (key == "at") {
      const auto at = Decimal(value, 0, 3600);
      if (!at) return shown + ": not a number of seconds above 0, up to 3600";
      fault->at = *at;
    } else if (key == "do") {
      if (Find(value) == nullptr) return shown + ": there is no such fault. There are " + AllKinds();
      fault->what = value;
    } else {
      const auto number = std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const Number& n) { return key == n.key; });
      if (number == std::end(kNumbers)) return "there is no key \"" + Shown(key) + "\"; keys are " + kKeys;
      const auto parsed = Whole(value, number->least, number->most);
      if (!parsed) return shown + ": not a number from " + std::to_string(number->least) + " to " + std::to_string(number->most);
      fault->*number->field = static_cast<int>(*parsed);
    }
  }
  if (given.empty()) return "it is empty; faults are separated by one \";\"";
  if (given.count("do") == 0) return std::string("do= is missing: what is to go wrong. There are ") + AllKinds();
  if (given.count("rank") == 0) return "rank= is missing: the rank of the job that it befalls";
  const Kind& kind = *Find(fault->what);
  const size_t times = given.count("op") + given.count("init") + given.count("at");
  if (times != 1) return (times == 0 ? "it does not say when" : "it says twice when") + std::string(": one of op=, init=, at=");
  for (const std::string& key : given) {
    const bool time = key == "op" || key == "init" || key == "at";
    if (time && !Has(kind.when, key)) {
      return "do=" + fault->what + " cannot be told by " + key + "=; it takes " + kind.when;
    }
    if (!time && key != "rank" && key != "do" && !Has(kind.keys, key)) {
      return "do=" + fault->what + " takes no " + key + "=" +
             (kind.keys[0] == 0 ? std::string() : std::string("; it takes ") + kind.keys);
    }
  }
  if (kind.needs[0] != 0 && given.count(kind.needs) == 0) return "do=" + fault->what + " needs " + kind.needs + "=";
  return "";
}

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n\r"), last = text.find_last_not_of(" \t\n\r");
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace

std::vector<PlannedFault> ParseFaults(const std::string& text, std::string* error) {
  error->clear();
  std::vector<PlannedFault> faults;
  if (Trimmed(text).empty()) return faults;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ';');) {
    PlannedFault fault;
    fault.number = static_cast<int>(faults.size()) + 1;
    fault.text = Trimmed(one);
    // The last one may be followed by a ";" too.
    if (fault.text.empty() && all.peek() == EOF && !faults.empty()) break;
    if (const std::string wrong = Read(fault.text, &fault); !wrong.empty()) {
      *error = Name(fault) + ": " + wrong;
      return {};
    }
    faults.push_back(fault);
  }
  return faults;
}

std::string Name(const PlannedFault& fault) { return "fault " + std::to_string(fault.number) + " \"" + Shown(fault.text) + "\""; }

bool OnMachine(const PlannedFault& fault) {
  return fault.what == "lanes" || fault.what == "nvlink" || fault.what == "lost" || fault.what == "port";
}
bool OnNetworkEdge(const PlannedFault& fault) { return fault.what.rfind("edge_", 0) == 0; }

}  // namespace ringscope::sim
