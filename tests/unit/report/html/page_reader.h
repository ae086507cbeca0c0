// Reads the HTML that we write strictly: anything unexpected is an error. Not a browser; good enough to see an element or
// attribute that no program of ours put there.
#ifndef RINGSCOPE_TESTS_UNIT_REPORT_HTML_PAGE_READER_H_
#define RINGSCOPE_TESTS_UNIT_REPORT_HTML_PAGE_READER_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ringscope::testing {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;  // as written, entities not resolved
  std::string raw;                                // of script and style: what stands inside
};

class PageReader {
 public:
  // Elements in order; `error` says what is wrong first.
  std::vector<Element> elements;
  std::string error;

  explicit PageReader(std::string_view page) : page_(page) {
    const std::string_view doctype = "<!DOCTYPE html>";
    if (!page_.starts_with(doctype)) error = "no doctype";
    at_ = doctype.size();
    while (error.empty() && at_ < page_.size()) Next();
    if (error.empty() && !open_.empty()) error = "not closed: " + open_.back();
  }

 private:
  void Next() {
    if (page_[at_] == '&') return Entity();
    if (page_[at_] != '<') {
      if (page_[at_] == '>') error = "a bare > at " + std::to_string(at_);
      ++at_;
      return;
    }
    if (page_.substr(at_, 2) == "</") return End();
    Start();
  }
  void Entity() {
    for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&nbsp;"}) {
      if (page_.substr(at_, entity.size()) == entity) {
        at_ += entity.size();
        return;
      }
    }
    error = "unknown entity at " + std::to_string(at_);
  }
  void End() {
    const size_t close = page_.find('>', at_);
    const std::string name(page_.substr(at_ + 2, close - at_ - 2));
    if (open_.empty() || open_.back() != name) {
      error = "</" + name + "> closes " + (open_.empty() ? "nothing" : open_.back()) + " at " + std::to_string(at_);
      return;
    }
    open_.pop_back();
    at_ = close + 1;
  }
  static bool NameByte(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; }
  std::string Name() {
    const size_t begin = at_;
    while (at_ < page_.size() && NameByte(page_[at_])) ++at_;
    return std::string(page_.substr(begin, at_ - begin));
  }
  void Start() {
    ++at_;
    Element e;
    e.name = Name();
    if (e.name.empty()) {
      error = "a bare < at " + std::to_string(at_);
      return;
    }
    bool empty = false;
    while (at_ < page_.size() && page_[at_] != '>') {
      if (page_[at_] == ' ' || page_[at_] == '\n') {
        ++at_;
        continue;
      }
      if (page_.substr(at_, 2) == "/>") {
        empty = true;
        ++at_;
        continue;
      }
      const std::string name = Name();
      std::string value;
      if (page_.substr(at_, 2) == "=\"") {
        const size_t end = page_.find('"', at_ + 2);
        value = page_.substr(at_ + 2, end - at_ - 2);
        at_ = end + 1;
        if (value.find_first_of("<>") != value.npos) error = "< or > in attribute " + name;
      }
      if (name.empty() || !e.attributes.emplace(name, value).second)
        error = "attributes of " + e.name + " at " + std::to_string(at_);
      if (!error.empty()) return;
    }
    ++at_;
    if (e.name == "script" || e.name == "style") {
      const size_t end = page_.find("</" + e.name + ">", at_);
      e.raw = page_.substr(at_, end - at_);
      at_ = end + e.name.size() + 3;
    } else if (!empty && !kVoid.contains(e.name)) {
      open_.push_back(e.name);
    }
    elements.push_back(std::move(e));
  }

  static inline const std::set<std::string> kVoid = {"meta", "br", "input"};
  std::string_view page_;
  size_t at_ = 0;
  std::vector<std::string> open_;
};

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_REPORT_HTML_PAGE_READER_H_
