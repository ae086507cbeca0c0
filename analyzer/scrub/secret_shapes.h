// What is a credential.
#ifndef RINGSCOPE_ANALYZER_SCRUB_SECRET_SHAPES_H_
#define RINGSCOPE_ANALYZER_SCRUB_SECRET_SHAPES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ringscope::scrub {

// By its form alone: a known prefix, a JSON web token, a long run that looks random. `word` is letters, digits and "-_.+".
bool SecretShape(std::string_view word);

// Where values of secrets stand in a line: behind a name that says so (NAME=, "name":, --name VALUE), "Bearer", in the user part
// of a URL, between quotes or not. Ascending, without overlap; found again where they are already masked.
struct Span {
  size_t begin, end;
};
void SecretValues(std::string_view line, std::vector<Span>* spans);

// A block of a private key, which may go over lines. Feed every line; `*line` then holds what is to be written instead, if
// anything.
class KeyBlock {
 public:
  // False: the line is no part of one. True: `out` replaces it ("" with drop: the line goes).
  bool Line(std::string_view line, std::string* out, bool* drop);

 private:
  bool inside_ = false;
  std::string prefix_;  // what stood before the block's first line: a launcher puts it before all
};

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_SECRET_SHAPES_H_
