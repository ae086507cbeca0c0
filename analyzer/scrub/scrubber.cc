#include "analyzer/scrub/scrubber.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cstring>

#include "analyzer/scrub/address_text.h"
#include "analyzer/scrub/escapes.h"
#include "analyzer/scrub/paths.h"
#include "analyzer/scrub/vocabulary.h"

namespace ringscope::scrub {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Alnum(char c) { return Digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z'); }
bool RunChar(char c) { return Alnum(c) || c == '-' || c == '_' || c == '.'; }
absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

std::string WithUnderscores(std::string_view name) {
  std::string out(name);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return out;
}

}  // namespace

void Scrubber::Learn(std::string_view line) {
  masks_->Reserve(line);
  std::string plain;
  if (Unescape(line, &plain)) line = plain;
  learner_.Line(line);
}

void Scrubber::Also(std::string_view word) {
  if (!word.empty() && !IsMask(word)) words_.emplace_back(word);
}

void Scrubber::Learned() {
  const auto add = [this](std::string_view name, Kind kind, std::string mask) {
    longest_ = std::max(longest_, name.size());
    known_.try_emplace(std::string(name), Known{kind, std::move(mask)});
  };
  // A word that names both a host and something else is a host.
  for (const std::string& host : names_.hosts) {
    const std::string mask = masks_->Of(Kind::kHost, host);
    add(host, Kind::kHost, mask);
    add(absl::AsciiStrToLower(host), Kind::kHost, mask);
    // As names of flight files spell it.
    add(WithUnderscores(host), Kind::kHost, mask);
  }
  for (const std::string& domain : names_.domains) {
    const std::string mask = masks_->Of(Kind::kDomain, domain);
    // "local", "hpc": ordinary words, but behind a host's name (Names).
    if (domain.find('.') != domain.npos) add(domain, Kind::kDomain, mask);
  }
  for (const std::string& user : names_.users) add(user, Kind::kUser, masks_->Of(Kind::kUser, user));
  for (const std::string& job : names_.jobs) {
    add(job, Kind::kJob, masks_->Of(Kind::kJob, job));
    add(WithUnderscores(job), Kind::kJob, masks_->Of(Kind::kJob, job));
  }
  for (const std::string& number : names_.job_numbers) masks_->Of(Kind::kJobNumber, number);
  for (const std::string& secret : names_.secrets) {
    // The password of "user:password" stands alone elsewhere.
    if (const size_t colon = secret.find(':'); colon != secret.npos && secret.size() - colon > 6)
      odd_secrets_.push_back(secret.substr(colon + 1));
    odd_secrets_.push_back(secret);
  }
  const auto longer = [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  };
  std::sort(odd_secrets_.begin(), odd_secrets_.end(), longer);
  odd_secrets_.erase(std::unique(odd_secrets_.begin(), odd_secrets_.end()), odd_secrets_.end());
  std::sort(words_.begin(), words_.end(), longer);
}

// At each start of a part of the run, the longest learned name that ends at the end of a part.
std::string Scrubber::Names(std::string_view run) const {
  std::string out;
  for (size_t i = 0; i < run.size();) {
    const bool start = Alnum(run[i]) && (i == 0 || !Alnum(run[i - 1]));
    if (!start) {
      out += run[i++];
      continue;
    }
    const Known* best = nullptr;
    size_t length = 0;
    for (size_t end = i; end < run.size() && end - i < longest_;) {
      while (end < run.size() && Alnum(run[end])) ++end;
      if (const auto it = known_.find(Absl(run.substr(i, end - i))); it != known_.end()) {
        best = &it->second;
        length = end - i;
      }
      while (end < run.size() && !Alnum(run[end])) ++end;
    }
    if (best == nullptr) {
      while (i < run.size() && Alnum(run[i])) out += run[i++];
      continue;
    }
    out += best->mask;
    i += length;
    // "node-1.cluster": what stands behind a host is its domain, known or not.
    if (best->kind == Kind::kHost && i + 1 < run.size() && run[i] == '.') {
      const std::string domain = masks_->Known(Kind::kDomain, run.substr(i + 1));
      if (!domain.empty()) {
        absl::StrAppend(&out, ".", domain);
        i = run.size();
      }
    }
  }
  return out;
}

// In a path the number of a job counts wherever it stands: "slurm-4711.out", "/scratch/4711/".
std::string Scrubber::NamesOfPath(std::string_view component) const {
  const std::string named = Names(component);
  std::string out;
  for (size_t i = 0; i < named.size();) {
    size_t end = i;
    while (end < named.size() && Alnum(named[end])) ++end;
    if (end == i) {
      out += named[i++];
      continue;
    }
    const std::string part = named.substr(i, end - i);
    const bool number = part.size() >= 3 && std::all_of(part.begin(), part.end(), Digit);
    const std::string mask = number ? masks_->Known(Kind::kJobNumber, part) : "";
    out += mask.empty() ? part : mask;
    i = end;
  }
  return out;
}

// "gpu[01-03,07]" of Slurm, where its first host is known: "host-[1-3,7]".
size_t Scrubber::NodeList(std::string_view text, size_t at, std::string* mask) {
  size_t open = at;
  while (open < text.size() && RunChar(text[open])) ++open;
  const size_t close = open < text.size() && text[open] == '[' ? text.find(']', open) : text.npos;
  if (close == text.npos || close - open > 4000 || open == at) return 0;
  const std::string_view prefix = text.substr(at, open - at), inside = text.substr(open + 1, close - open - 1);
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < inside.size();) {
    const size_t comma = std::min(inside.find(',', i), inside.size());
    const std::string_view range = inside.substr(i, comma - i);
    const size_t dash = std::min(range.find('-'), range.size());
    int from = 0, to = 0;
    if (!absl::SimpleAtoi(Absl(range.substr(0, dash)), &from)) return 0;
    if (dash == range.size()) {
      to = from;
    } else if (!absl::SimpleAtoi(Absl(range.substr(dash + 1)), &to)) {
      return 0;
    }
    if (to < from || to - from > 4096 || numbers.size() > 16384) return 0;
    for (int n = from; n <= to; ++n) {
      std::string number = absl::StrCat(n);
      if (number.size() < dash) number.insert(0, dash - number.size(), '0');
      const auto it = known_.find(absl::StrCat(Absl(prefix), number));
      uint64_t value = 0;
      if (it == known_.end() || !absl::SimpleAtoi(absl::string_view(it->second.mask).substr(5), &value)) return 0;
      numbers.push_back(value);
    }
    i = comma + 1;
  }
  if (numbers.empty()) return 0;
  *mask = "host-[";
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    absl::StrAppend(mask, i == 0 ? "" : ",", numbers[i], end > i ? absl::StrCat("-", numbers[end]) : "");
    i = end + 1;
  }
  *mask += "]";
  return close + 1 - at;
}

namespace {

// The word before `at` and what binds it: "JobId=", "Serial Number : ".
bool Behind(std::string_view text, size_t at, std::initializer_list<const char*> words) {
  std::string before = absl::AsciiStrToLower(Absl(text.substr(at > 40 ? at - 40 : 0, std::min<size_t>(at, 40))));
  while (!before.empty() && std::strchr(" \t=:\"'\\", before.back()) != nullptr) before.pop_back();
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return before.ends_with(word); });
}

}  // namespace

size_t Scrubber::Serial(std::string_view text, size_t at, std::string* mask) {
  size_t end = at;
  while (end < text.size() && (Alnum(text[end]) || text[end] == '-')) ++end;
  if (end - at < 5 || !std::any_of(text.begin() + at, text.begin() + end, Digit)) return 0;
  if (!Behind(text, at,
              {"serial number", "serial", "serial_number", "serialnumber", "<serial>", "board part number", "chassis serial",
               "system guid", "serial no", "s/n"}))
    return 0;
  *mask = masks_->Of(Kind::kSerial, text.substr(at, end - at));
  return end - at;
}

size_t Scrubber::JobNumber(std::string_view text, size_t at, std::string* mask) {
  size_t end = at;
  while (end < text.size() && Digit(text[end])) ++end;
  if (end - at < 3 || end - at > 12 || (end < text.size() && Alnum(text[end]))) return 0;
  const std::string known = masks_->Known(Kind::kJobNumber, text.substr(at, end - at));
  if (known.empty()) return 0;
  if (!Behind(text, at,
              {"slurm_job_id", "slurm_jobid", "slurm_array_job_id", "jobid", "job_id", "job", "stepid", "step", "slurm", "slurm-",
               "job-", "job_", "slurm_"}))
    return 0;
  *mask = known;
  return end - at;
}

// Everything that is known by its form or was learned, from left to right.
std::string Scrubber::Replaced(std::string_view text) {
  std::string out, mask;
  out.reserve(text.size() + 32);
  const auto names = [this](std::string_view part) { return NamesOfPath(part); };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const char before = i > 0 ? text[i - 1] : ' ';
    // "remoteGidsfe80::…": NCCL glues the two.
    const bool start = (!Alnum(before) && before != '_') || text.substr(i, 5) == "fe80:";
    // Address or UUID.
    if (start && (Alnum(c) || (c == ':' && i + 1 < text.size() && text[i + 1] == ':' && before != ':'))) {
      const bool inside = before == '.' && i > 1 && Alnum(text[i - 2]);
      if (!inside || !Digit(c)) {
        if (const size_t n = MaskAddressAt(text, i, masks_, &mask); n > 0) {
          out += mask;
          i += n;
          continue;
        }
      }
    }
    const bool option = i > 1 && text[i - 2] == '-' && (before == 'I' || before == 'L');  // a compiler's
    if (c == '/' && i + 1 < text.size() && (RunChar(text[i + 1]) || text[i + 1] == '~') && (!Alnum(before) || option) &&
        before != '<' && before != '/' && before != '-' && before != '_' && before != '.') {
      const size_t n = PathLength(text, i, before == '"' || before == '\'');
      const std::string_view path = text.substr(i, n);
      // "/s", "/8", "/IPC" are units and parts of words.
      if (n > 2 && (path.find('/', 1) != path.npos || path.size() > 4)) {
        out += MaskPath(path, masks_, names);
        i += n;
        continue;
      }
    }
    if (c == '~' && start && i + 1 < text.size() && text[i + 1] == '/') {
      const size_t n = PathLength(text, i, false);
      out += MaskPath(text.substr(i, n), masks_, names);
      i += n;
      continue;
    }
    // The path of a URL: of a public host it is a reference, else it is somebody's.
    if (c == ':' && text.substr(i, 3) == "://") {
      size_t end = i + 3;
      while (end < text.size() && (RunChar(text[end]) || text[end] == '@' || text[end] == ':')) ++end;
      const std::string_view authority = text.substr(i + 3, end - i - 3);
      const std::string_view host = authority.substr(0, authority.find(':'));
      out += "://";
      size_t begin = i;
      while (begin > 0 && Alnum(text[begin - 1])) --begin;
      const std::string_view scheme = text.substr(begin, i - begin);
      const bool bucket =
          scheme == "s3" || scheme == "s3a" || scheme == "gs" || scheme == "hdfs" || scheme == "abfs" || scheme == "wasb";
      if (scheme != "file" && scheme != "frozen") {
        if (PublicHost(host) && host != "github.com" && host != "huggingface.co" && host != "wandb.ai" && host != "gitlab.com") {
          const size_t n = PathLength(text, end, false);
          out += text.substr(i + 3, end - i - 3 + n);
          i = end + n;
          continue;
        }
        if (bucket && !host.empty()) {
          out += PublicWords(Names(host)) ? Names(host) : masks_->Of(Kind::kDirectory, host);
          out += authority.substr(host.size());
        } else {
          out += Replaced(authority);
        }
        i = end;
        if (i < text.size() && text[i] == '/') {
          const size_t n = PathLength(text, i, false);
          out += MaskPath(text.substr(i, n), masks_, names);
          i += n;
        }
        continue;
      }
      i += 3;
      continue;
    }
    if (!start || !Alnum(c)) {
      out += c;
      ++i;
      continue;
    }
    if (Digit(c)) {
      if (const size_t n = JobNumber(text, i, &mask); n > 0) {
        out += mask;
        i += n;
        continue;
      }
    }
    if (const size_t n = Serial(text, i, &mask); n > 0) {
      out += mask;
      i += n;
      continue;
    }
    if (const size_t n = NodeList(text, i, &mask); n > 0) {
      out += mask;
      i += n;
      continue;
    }
    size_t end = i;
    while (end < text.size() && RunChar(text[end])) ++end;
    while (end > i && (text[end - 1] == '.' || text[end - 1] == '-')) --end;
    const std::string_view run = text.substr(i, end - i);
    if (SecretShape(run)) {
      // Inside "name_TOKEN" or "GPU-UUID" the parts that stand before are kept no longer: the whole run goes.
      out += masks_->Of(Kind::kSecret, run);
      i = end;
      continue;
    }
    // A part of the run that is an address or a UUID: "GPU-1234…", "ip_10.0.0.1".
    size_t inner = 0;
    for (size_t k = 1; k + 7 < run.size() && inner == 0; ++k) {
      if (Alnum(run[k]) && !Alnum(run[k - 1]) && run[k - 1] != '.') inner = MaskAddressAt(text, i + k, masks_, &mask) > 0 ? k : 0;
    }
    if (inner > 0) {
      out += Names(run.substr(0, inner));
      i += inner;
      const size_t n = MaskAddressAt(text, i, masks_, &mask);
      out += mask;
      i += n;
      continue;
    }
    // "alice@acme.com": the user, then the domain.
    if (end < text.size() && text[end] == '@' && end + 1 < text.size() && Alnum(text[end + 1]) && !PublicUser(run) &&
        !IsMask(run)) {
      size_t close = end + 1;
      while (close < text.size() && RunChar(text[close])) ++close;
      const std::string_view domain = text.substr(end + 1, close - end - 1);
      const size_t dot = domain.rfind('.');
      if (dot != domain.npos && dot + 2 < domain.size() &&
          std::all_of(domain.begin() + dot + 1, domain.end(), [](char d) { return Alnum(d) && !Digit(d); }) &&
          !domain.ends_with("service")) {
        out += masks_->Of(Kind::kUser, run);
        i = end;
        continue;
      }
    }
    // A relative path, or a source file's name.
    if (end < text.size() && text[end] == '/' && before != '/' && !PublicHost(run)) {
      const size_t n = PathLength(text, i, false);
      if (UserFileEnding(text.substr(i, n))) {
        out += MaskPath(text.substr(i, n), masks_, names);
        i += n;
        continue;
      }
      // "registry.acme.com/team/image": what stands below a named host is the owner's.
      const std::string named = Names(run);
      if (named != run && run.find('.') != run.npos && absl::StrContains(named, ".example")) {
        out += named;
        i = end;
        const size_t rest = PathLength(text, i, false);
        out += MaskPath(text.substr(i, rest), masks_, names);
        i += rest;
        continue;
      }
    }
    if (UserFileEnding(run) && before != '/') {
      out += MaskFileName(run, masks_, names);
      i = end;
      continue;
    }
    out += Names(run);
    i = end;
  }
  return out;
}

std::string Scrubber::Secrets(std::string_view line) {
  static thread_local std::vector<Span> spans;
  std::string found;
  SecretValues(line, &spans);
  size_t done = 0;
  for (const Span& span : spans) {
    found += line.substr(done, span.begin - done);
    const std::string_view value = line.substr(span.begin, span.end - span.begin);
    found += IsMask(value) ? std::string(value) : masks_->Of(Kind::kSecret, value);
    done = span.end;
  }
  if (done > 0) {
    found += line.substr(done);
    line = found;
  }
  std::string out;
  bool copied = false;
  const auto replace = [&](const std::string& original, Kind kind) {
    const std::string_view now = copied ? std::string_view(out) : line;
    if (now.find(original) == now.npos) return;
    out = absl::StrReplaceAll(Absl(now), {{original, masks_->Of(kind, original)}});
    copied = true;
  };
  for (const std::string& word : words_) replace(word, Kind::kName);
  for (const std::string& secret : odd_secrets_) replace(secret, Kind::kSecret);
  return copied ? out : std::string(line);
}

std::string Scrubber::Line(std::string_view line, KeyBlock* block, bool* drop) {
  std::string plain, key;
  if (Unescape(line, &plain)) line = plain;
  *drop = false;
  if (block != nullptr && block->Line(line, &key, drop)) {
    if (*drop) return "";
    line = key;
  }
  return Replaced(Secrets(line));
}

std::string Scrubber::Text(std::string_view text) {
  std::string out;
  KeyBlock block;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    bool drop = false;
    const std::string line = Line(text.substr(start, end - start), &block, &drop);
    if (!drop) {
      out += line;
      if (end < text.size()) out += '\n';
    }
    start = end + 1;
  }
  return out;
}

std::string Scrubber::Value(std::string_view name, std::string_view value) {
  const std::string line = Text(absl::StrCat(Absl(name), "=", Absl(value)));
  // The name of a variable is no name of anybody's; if it was changed all the same, only the value can be trusted to be whole.
  const size_t equals = line.find('=');
  return equals == line.npos ? Text(value) : line.substr(equals + 1);
}

std::string Scrubber::OpaqueName(std::string_view name) {
  return MaskFileName(
      name, masks_, [](std::string_view) { return std::string(); }, true);
}

std::string Scrubber::FileName(std::string_view name) {
  const std::string shown = Secrets(name);
  return MaskPath(shown, masks_, [this](std::string_view part) { return NamesOfPath(part); });
}

}  // namespace ringscope::scrub
