#ifndef RINGSCOPE_TOOLS_NEAREST_H_
#define RINGSCOPE_TOOLS_NEAREST_H_

#include <string>
#include <vector>

namespace ringscope::tools {

// The one of `words` that `word` was probably meant to be: fewest edits, at most a third of the
// letters; "" for none.
std::string Nearest(const std::string& word, const std::vector<std::string>& words);

// "; did you mean X?" or "".
std::string DidYouMean(const std::string& word, const std::vector<std::string>& words);

}  // namespace ringscope::tools

#endif  // RINGSCOPE_TOOLS_NEAREST_H_
