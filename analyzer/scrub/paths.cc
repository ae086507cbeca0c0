#include "analyzer/scrub/paths.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstring>

#include "analyzer/scrub/secret_shapes.h"
#include "analyzer/scrub/vocabulary.h"

namespace ringscope::scrub {
namespace {

bool Ends(char c) {
  return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || std::strchr("\"'`,;:<>|()[]{}*?&=!", c) != nullptr;
}

// Below these nothing is anybody's.
bool SystemPath(std::string_view path) {
  for (const char* root : {"/proc/", "/sys/", "/usr/lib/", "/usr/lib64/", "/usr/include/", "/usr/bin/", "/usr/sbin/", "/lib/",
                           "/lib64/", "/bin/", "/sbin/", "/dev/infiniband/", "/dev/nvidia", "/dev/null", "/usr/local/cuda"}) {
    if (path.starts_with(root)) return true;
  }
  return false;
}

// Public software from here on: "…/site-packages/torch/nn/modules/module.py".
bool PublicAnchor(std::string_view component) {
  return component == "site-packages" || component == "dist-packages" || component == "csrc" ||
         (component.starts_with("python3") && component.size() <= 11);
}

// "nccl-a1B2c3", "torch_123_456", "ringscope-1000".
bool TemporaryOfPublic(std::string_view component) {
  return component.starts_with("nccl-") || component.starts_with("cuda.shm.");
}

std::string Masked(Kind kind, std::string_view component, Masks* masks) { return masks->Of(kind, component); }

// Ranks and masks that a name holds, for who reads it again.
std::string Hints(std::string_view name, bool hosts = true) {
  static const RE2& ranks = *new RE2(R"((?i)(rank[-_.]?\d{1,6})(?:[^a-zA-Z0-9]|$))");
  static const RE2& all = *new RE2(
      R"((?i)((?:rank[-_.]?\d{1,6})|(?:(?:host|user|job|name)-\d+)|(?:gpu[-_]?\d{1,3})|(?:node[-_]?\d{1,5}))(?:[^a-zA-Z0-9]|$))");
  re2::StringPiece input(name.data(), name.size()), hint;
  std::string out;
  while (RE2::FindAndConsume(&input, hosts ? all : ranks, &hint))
    absl::StrAppend(&out, "-", absl::string_view(hint.data(), hint.size()));
  return out;
}

std::string Component(std::string_view component, bool last, Masks* masks, const Names& names) {
  if (component.empty() || component == "." || component == ".." || component == "~" || TemporaryOfPublic(component))
    return std::string(component);
  if (last) return MaskFileName(component, masks, names);
  const std::string named = names(component);
  return PublicWords(named) ? named : Masked(Kind::kDirectory, component, masks) + Hints(named);
}

}  // namespace

bool UserFileEnding(std::string_view word) {
  for (const char* ending : {".py",          ".ipynb", ".sh",      ".yaml",  ".yml",   ".json",   ".jsonl", ".pt",   ".pth",
                             ".safetensors", ".ckpt",  ".log",     ".txt",   ".out",   ".err",    ".csv",   ".toml", ".pkl",
                             ".gz",          ".zst",   ".parquet", ".arrow", ".trace", ".flight", ".stream"}) {
    if (word.size() > std::strlen(ending) && word.ends_with(ending)) return true;
  }
  return false;
}

size_t PathLength(std::string_view text, size_t at, bool quoted) {
  size_t end = at;
  while (end < text.size() && !Ends(text[end]) && text[end] != '\\' && end - at < 4096) ++end;
  if (quoted && end < text.size() && text[end] == ' ') {
    // "/data/my files/x.pt" between quotes: a path, unless it goes on like a command.
    const char quote = text[at - 1];
    const size_t close = text.substr(0, std::min(text.size(), at + 512)).find(quote, end);
    if (close != text.npos) {
      const std::string_view rest = text.substr(end, close - end);
      if (rest.find(" /") == rest.npos && rest.find(" -") == rest.npos && rest.find('/') != rest.npos &&
          rest.find('=') == rest.npos)
        end = close;
    }
  }
  while (end > at && text[end - 1] == '.') --end;  // the end of a sentence
  return end - at;
}

std::string MaskFileName(std::string_view component, Masks* masks, const Names& names, bool opaque) {
  const std::string named = opaque ? std::string(component) : names(component);
  if (!opaque && PublicWords(named)) return named;
  size_t dot = component.rfind('.');
  std::string ending;
  if (dot != component.npos && dot > 0) {
    // ".log.gz"
    if (const std::string_view tail = component.substr(dot + 1); (tail == "gz" || tail == "zst" || tail == "tmp") && dot > 1) {
      if (const size_t before = component.rfind('.', dot - 1); before != component.npos && before > 0) dot = before;
    }
    ending = std::string(component.substr(dot));
    if (ending.size() > 16 || !PublicWords(ending)) ending.clear();
  }
  const std::string_view stem = component.substr(0, component.size() - ending.size());
  const Kind kind = ending.empty() ? Kind::kDirectory : Kind::kFile;
  if (IsMask(stem)) return std::string(component);
  // "file-1-rank3.log" is a masked one.
  static const RE2& masked = *new RE2(R"((?:file|dir)-\d+(?:-(?:(?i:rank|gpu|node|host|user|job|name)[-_.]?\d+))*)");
  if (RE2::FullMatch(re2::StringPiece(stem.data(), stem.size()), masked)) return std::string(component);
  return Masked(kind, stem, masks) + Hints(named, !opaque) + ending;
}

std::string MaskPath(std::string_view path, Masks* masks, const Names& names) {
  if (SystemPath(path)) return std::string(path);
  std::string out;
  bool anchored = false;
  std::string_view before;
  for (size_t start = 0; start <= path.size();) {
    size_t end = path.find('/', start);
    if (end == path.npos) end = path.size();
    const std::string_view component = path.substr(start, end - start);
    const bool last = end == path.size();
    if (anchored) {
      out += component;
    } else if ((before == "home" || before == "Users" || before == "users" || before == "homes") && !component.empty()) {
      const std::string named = names(component);
      out += named != component || PublicUser(component) ||
                     (component.size() > 1 && PublicWords(component) && last && component.find('.') != component.npos)
                 ? named
                 : masks->Of(Kind::kUser, component);
    } else {
      out += Component(component, last, masks, names);
    }
    anchored = anchored || PublicAnchor(component);
    before = component;
    if (last) break;
    out += '/';
    start = end + 1;
  }
  return out;
}

}  // namespace ringscope::scrub
