#include "catalog/search.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string>

namespace ringscope::catalog {
namespace {

std::set<std::string> WordsOf(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto end = [&] {
    if (word.size() >= 3) words.insert(word);
    word.clear();
  };
  for (const char c : text) {
    if (isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += static_cast<char>(tolower(static_cast<unsigned char>(c)));
    } else {
      end();
    }
  }
  end();
  return words;
}

struct Indexed {
  const Entry* entry;
  std::set<std::string> name, body;
};

const std::vector<Indexed>& Index() {
  static const std::vector<Indexed>& index = *[] {
    auto* all = new std::vector<Indexed>;
    for (const Entry& entry : Entries().entry()) {
      std::string body = entry.quick_answer() + " " + entry.mechanism();
      for (const Symptom& s : entry.symptoms()) body += " " + s.seen() + " " + s.really_shows();
      for (const LineShape& line : entry.signatures()) body += " " + line.example();
      for (const std::string& system : entry.systems_affected()) body += " " + system;
      all->push_back({&entry, WordsOf(entry.name()), WordsOf(body)});
    }
    return all;
  }();
  return index;
}

}  // namespace

std::vector<Found> Search(std::string_view text, size_t most) {
  const std::vector<Indexed>& index = Index();
  std::vector<Found> found;
  std::vector<double> held(index.size(), 0);
  double sought = 0;
  for (const Indexed& entry : index) found.push_back({entry.entry, 0});
  for (const std::string& word : WordsOf(text)) {
    std::vector<size_t> holders, named;
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i].name.count(word) > 0) named.push_back(i);
      if (index[i].name.count(word) > 0 || index[i].body.count(word) > 0) holders.push_back(i);
    }
    // A word of every other entry tells only those apart that are named by it.
    const bool common = 2 * holders.size() > index.size();
    if (common) holders = named;
    if (!common) ++sought;
    for (const size_t i : holders) {
      const double rare = std::log(static_cast<double>(index.size() + 1) / static_cast<double>(holders.size()));
      found[i].score += rare * (index[i].name.count(word) > 0 ? 3 : 1);
      if (!common) ++held[i];
    }
  }
  std::vector<Found> good;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].score > 0 && 2 * held[i] >= sought) good.push_back(found[i]);
  }
  std::stable_sort(good.begin(), good.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
  if (good.size() > most) good.resize(most);
  return good;
}

}  // namespace ringscope::catalog
