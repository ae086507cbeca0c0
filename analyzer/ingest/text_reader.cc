#include "analyzer/ingest/text_reader.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "analyzer/ingest/block_filter.h"
#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/signature_matcher.h"
#include "analyzer/ingest/text_line.h"
#include "analyzer/ingest/utf16.h"
#include "analyzer/ingest/wrapped_lines.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kHead = 1 << 16;
// A flood of the same line tells no more than a few of them.
constexpr uint32_t kMostEventsOfAKind = 256;  // one signature, one file
// Compiling the filter takes as long as reading some megabytes without it.
constexpr uint64_t kFilterFrom = uint64_t{32} << 20;
constexpr uint64_t kMostDocument = uint64_t{1} << 30;

std::string Quote(std::string_view text) {
  std::string quote(text.substr(0, model::kMaxQuote));
  for (char& c : quote) {
    // Bytes that are no ASCII are shown as they are only when the whole is valid UTF-8; see below.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  // Cut at the last whole character; replace what is no UTF-8.
  std::string valid;
  for (size_t i = 0; i < quote.size();) {
    const auto byte = static_cast<unsigned char>(quote[i]);
    const size_t n = byte < 0x80                   ? 1
                     : byte >= 0xc2 && byte < 0xe0 ? 2
                     : byte >= 0xe0 && byte < 0xf0 ? 3
                     : byte >= 0xf0 && byte < 0xf5 ? 4
                                                   : 0;
    bool whole = n > 0 && i + n <= quote.size();
    for (size_t j = 1; whole && j < n; ++j) whole = (static_cast<unsigned char>(quote[i + j]) & 0xc0) == 0x80;
    // Surrogates and overlong forms: rare enough to be replaced as a whole.
    if (whole && n == 3 && ((byte == 0xe0 && static_cast<unsigned char>(quote[i + 1]) < 0xa0) ||
                            (byte == 0xed && static_cast<unsigned char>(quote[i + 1]) >= 0xa0)))
      whole = false;
    if (whole && n == 4 && ((byte == 0xf0 && static_cast<unsigned char>(quote[i + 1]) < 0x90) ||
                            (byte == 0xf4 && static_cast<unsigned char>(quote[i + 1]) >= 0x90)))
      whole = false;
    if (whole) {
      valid.append(quote, i, n);
      i += n;
    } else {
      valid += '?';
      ++i;
    }
  }
  return valid;
}

class Reading {
 public:
  Reading(const FileContext& context, const SignatureMatcher& matcher)
      : context_(context), matcher_(matcher), cleaner_(context.info().rank, context.info().host) {
    readers_.resize(LineReaders().size());
  }

  // `head`: the first lines.
  void FindWrapWidth(std::string_view head) { wrapped_.FindWidth(head); }

  void Line(std::string_view raw) {
    ++line_;
    if (!wrapped_.wraps()) return Whole(raw);
    wrapped_.Line(raw, line_, [this](std::string_view line, uint32_t number) { Numbered(line, number); });
  }

  // A block of whole lines, each with its newline.
  void Block(std::string_view block) {
    seen_ += block.size();
    BlockFilter* filter = !wrapped_.wraps() && seen_ > kFilterFrom ? BlockFilter::All() : nullptr;
    const std::vector<size_t>* matches = filter == nullptr ? nullptr : &filter->Scan(block);
    size_t next = 0;
    for (size_t start = 0, end; start < block.size(); start = end + 1) {
      end = block.find('\n', start);
      if (matches != nullptr) {
        while (next < matches->size() && (*matches)[next] < start) ++next;
        const bool matters = next < matches->size() && (*matches)[next] <= end;
        if (!matters && engaged_.empty() && end - start <= kMaxLine && !filter->Other(CleanText(block.substr(start, end - start)))) {
          ++line_;
          continue;
        }
      }
      Line(block.substr(start, end - start));
    }
  }

  void End() {
    wrapped_.End([this](std::string_view line, uint32_t number) { Numbered(line, number); });
    for (auto& reader : readers_) {
      if (reader) reader->End();
    }
    context_.info().lines = line_;
    for (size_t i = 0; i < readers_.size(); ++i) {
      if (readers_[i]) context_.info().readers.push_back(LineReaders()[i].name);
    }
    for (auto& [signature, count] : counts_) {
      if (count > kMostEventsOfAKind) context_.evidence->uncounted[signature] += count - kMostEventsOfAKind;
    }
  }

 private:
  // A line, whole again.
  void Whole(std::string_view raw) {
    if (raw.size() > kMaxLine) {
      if (long_lines_++ == 0)
        context_.Note(absl::StrCat("line ", line_, ": longer than ", kMaxLine >> 10, " KiB; its start was read, the rest left out"));
      raw = raw.substr(0, kMaxLine);
    }
    while (!raw.empty() && (raw.back() == '\r' || raw.back() == '\n')) raw.remove_suffix(1);
    // A progress bar: what the terminal overwrote stands before each carriage return, a message may follow the last.
    size_t start = 0;
    for (size_t cr = raw.find('\r'); cr != raw.npos; cr = raw.find('\r', start)) {
      Piece(raw.substr(start, cr - start));
      start = cr + 1;
    }
    Piece(raw.substr(start));
  }

  std::string_view CleanText(std::string_view raw) {
    while (raw.ends_with('\r')) raw.remove_suffix(1);
    return cleaner_.Clean(raw, {context_.file, line_}).text;
  }

  void Numbered(std::string_view line, uint32_t number) {
    const uint32_t now = std::exchange(line_, number);
    Whole(line);
    line_ = now;
  }

  void Piece(std::string_view raw) {
    if (raw.empty() && engaged_.empty()) return;
    const TextLine line = cleaner_.Clean(raw, {context_.file, line_});
    matcher_.Match(line.text, &hits_);
    for (const auto& [signature, pattern] : hits_.signatures) Keep(*signature, *pattern, line);
    if (hits_.readers.empty() && engaged_.empty()) return;
    std::vector<int> next;
    for (const int index : hits_.readers) Offer(index, line, &next);
    for (const int index : engaged_) {
      if (std::find(hits_.readers.begin(), hits_.readers.end(), index) == hits_.readers.end()) Offer(index, line, &next);
    }
    engaged_ = std::move(next);
  }

  void Offer(int index, const TextLine& line, std::vector<int>* next) {
    if (!readers_[index]) readers_[index] = LineReaders()[index].make(context_);
    if (readers_[index]->Line(line)) next->push_back(index);
  }

  void Keep(const catalog::Signature& signature, const RE2& pattern, const TextLine& line) {
    uint32_t& count = counts_[signature.id()];
    if (++count > kMostEventsOfAKind) return;
    model::Event event;
    event.signature = signature.id();
    event.fields = SignatureMatcher::Fields(pattern, line.text);
    event.where = line.where;
    event.by = line.by;
    event.time = line.time;
    event.text = Quote(line.quote);
    context_.evidence->events.push_back(std::move(event));
  }

  const FileContext& context_;
  const SignatureMatcher& matcher_;
  LineCleaner cleaner_;
  WrappedLines wrapped_{&cleaner_};
  SignatureMatcher::Hits hits_;
  std::vector<std::unique_ptr<LineReader>> readers_;
  std::vector<int> engaged_;
  absl::flat_hash_map<std::string, uint32_t> counts_;
  uint32_t line_ = 0;
  uint64_t seen_ = 0;
  uint64_t long_lines_ = 0;
};

// The document reader whose form this is, or nullptr.
const DocumentReaderType* DocumentOf(std::string_view head) {
  for (const DocumentReaderType& reader : DocumentReaders()) {
    if (reader.looks_like(head)) return &reader;
  }
  return nullptr;
}

absl::Status ReadDocument(const DocumentReaderType& reader, std::string bytes, ByteSource* source, const FileContext& context) {
  const uint64_t most = std::min(reader.max_bytes, kMostDocument);
  absl::Status source_status;
  while (bytes.size() <= most) {
    auto more = source->More(&bytes);
    if (!more.ok()) source_status = more.status();
    if (!more.ok() || !*more) break;
  }
  if (bytes.size() > most) {
    context.Note(absl::StrCat("larger than ", most >> 20, " MiB, which no ", reader.name, " is; left out"));
    return source_status;
  }
  context.info().readers.push_back(reader.name);
  const absl::Status status = reader.read(bytes, context);
  if (!status.ok()) context.Note(std::string(status.message()));
  return source_status;
}

}  // namespace

bool LooksLikeText(std::string_view head) {
  if (head.empty()) return false;
  if (LooksLikeUtf16(head)) {
    std::string decoded;
    const auto nothing = BytesSource({});
    (void)Utf16Source(std::string(head), nothing.get()).More(&decoded);
    return LooksLikeText(decoded);
  }
  size_t odd = 0;
  for (const char c : head) {
    const auto byte = static_cast<unsigned char>(c);
    odd += byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != 0x1b && byte != '\b' && byte != '\f';
  }
  return odd * 50 < head.size();
}

bool IsDocument(std::string_view head) { return DocumentOf(head) != nullptr; }

absl::Status ReadText(const std::string& path, std::string head, ByteSource* source, model::Evidence* evidence,
                      std::vector<model::Record>* records, const Progress& progress) {
  if (head.size() < 2) (void)source->More(&head);  // an error is met again below
  if (LooksLikeUtf16(head)) {
    Utf16Source decoded(std::move(head), source);
    return ReadText(path, "", &decoded, evidence, records, progress);
  }
  absl::Status status;
  bool more = true;
  std::string buffer = std::move(head);
  const auto refill = [&] {
    auto got = source->More(&buffer);
    if (!got.ok()) status = got.status();
    more = got.ok() && *got;
  };
  while (more && buffer.size() < kHead) refill();

  model::TextFile file;
  file.path = path;
  const NameHints hints = HintsOfName(path);
  file.rank = hints.rank;
  file.host = hints.host;
  evidence->files.push_back(std::move(file));
  const FileContext context{evidence, records, static_cast<int>(evidence->files.size()) - 1};

  if (const DocumentReaderType* reader = DocumentOf(std::string_view(buffer).substr(0, kHead)); reader != nullptr) {
    if (more) return ReadDocument(*reader, std::move(buffer), source, context);
    // All of it is here; the source's own end is known.
    ReadDocument(*reader, std::move(buffer), BytesSource({}).get(), context).IgnoreError();
    return status;
  }

  Reading reading(context, SignatureMatcher::All());
  // A byte order mark, written by Windows tools.
  if (std::string_view(buffer).substr(0, 3) == "\xef\xbb\xbf") buffer.erase(0, 3);
  reading.FindWrapWidth(std::string_view(buffer).substr(0, kHead));
  uint64_t done = 0;
  while (true) {
    const size_t last = buffer.rfind('\n');
    const size_t start = last == buffer.npos ? 0 : last + 1;
    reading.Block(std::string_view(buffer).substr(0, start));
    done += start;
    if (progress) progress(path, done, 0);
    buffer.erase(0, start);
    if (!more) break;
    // A line without end: its start is enough, the rest is passed over.
    if (buffer.size() > 4 * kMaxLine) {
      const std::string line = buffer.substr(0, kMaxLine + 1);
      while (more && buffer.find('\n') == buffer.npos) {
        done += buffer.size();
        buffer.clear();
        refill();
      }
      reading.Line(line);
      const size_t end = buffer.find('\n');
      buffer.erase(0, end == buffer.npos ? buffer.size() : end + 1);
      continue;
    }
    refill();
  }
  if (!buffer.empty()) reading.Line(buffer);
  reading.End();
  return status;
}

absl::Status ReadTextBytes(const std::string& path, std::string_view bytes, model::Evidence* evidence,
                           std::vector<model::Record>* records) {
  std::vector<model::Record> none;
  return ReadText(path, "", BytesSource(bytes).get(), evidence, records == nullptr ? &none : records);
}

}  // namespace ringscope::ingest
