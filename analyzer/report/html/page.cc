#include "analyzer/report/html/page.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include "analyzer/report/html/sha256.h"

// .incbin: the files become part of the program (as the catalogue does).
#define RINGSCOPE_ASSET(name, file)                                           \
  extern "C" const char ringscope_asset_##name##_begin[];                     \
  extern "C" const char ringscope_asset_##name##_end[];                       \
  asm(".section .rodata\n"                                                    \
      ".global ringscope_asset_" #name                                        \
      "_begin\n"                                                              \
      ".global ringscope_asset_" #name                                        \
      "_end\n"                                                                \
      "ringscope_asset_" #name "_begin: .incbin \"" RINGSCOPE_ASSETS "/" file \
      "\"\n"                                                                  \
      "ringscope_asset_" #name                                                \
      "_end:\n"                                                               \
      ".byte 0\n"                                                             \
      ".previous\n")

RINGSCOPE_ASSET(page_css, "page.css");
RINGSCOPE_ASSET(page_js, "page.js");
RINGSCOPE_ASSET(report_css, "report.css");
RINGSCOPE_ASSET(report_js, "report.js");

namespace ringscope::report::html {
namespace assets {

#define RINGSCOPE_ASSET_VIEW(name) \
  { ringscope_asset_##name##_begin, static_cast<size_t>(ringscope_asset_##name##_end - ringscope_asset_##name##_begin) }

std::string_view PageCss() { return RINGSCOPE_ASSET_VIEW(page_css); }
std::string_view PageJs() { return RINGSCOPE_ASSET_VIEW(page_js); }
std::string_view ReportCss() { return RINGSCOPE_ASSET_VIEW(report_css); }
std::string_view ReportJs() { return RINGSCOPE_ASSET_VIEW(report_js); }

}  // namespace assets

namespace {

std::string Hashes(const std::vector<std::string_view>& texts) {
  std::string sources;
  for (const std::string_view text : texts) {
    const auto digest = Sha256(text);
    absl::StrAppend(&sources, " 'sha256-",
                    absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size())), "'");
  }
  return sources;
}

}  // namespace

std::string Render(const Page& page) {
  std::vector<std::string_view> styles = {assets::PageCss()}, scripts = {assets::PageJs()};
  styles.insert(styles.end(), page.styles.begin(), page.styles.end());
  scripts.insert(scripts.end(), page.scripts.begin(), page.scripts.end());
  std::string out = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src",
      Hashes(styles), "; script-src", Hashes(scripts),
      "; base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>",
      Escaped(page.title), "</title>\n");
  const auto append = [&out](std::string_view text) { out.append(text); };
  for (const std::string_view style : styles) append("<style>"), append(style), append("</style>\n");
  append("</head>\n<body>\n");
  append(page.body.str());
  for (const std::string_view script : scripts) append("<script>"), append(script), append("</script>\n");
  append("</body>\n</html>\n");
  return out;
}

void Command(std::string_view command, Writer* out) {
  if (command.empty()) return;
  *out << "<div class=\"command\"><code>" << command
       << "</code><button type=\"button\" class=\"copy\" aria-label=\"Copy the command\">Copy</button></div>";
}

}  // namespace ringscope::report::html
