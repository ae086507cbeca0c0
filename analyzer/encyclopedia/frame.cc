#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include "analyzer/encyclopedia/parts.h"
#include "analyzer/report/html/sha256.h"

// .incbin: the program stays one file.
extern "C" const char ringscope_encyclopedia_style_begin[], ringscope_encyclopedia_style_end[];
extern "C" const char ringscope_encyclopedia_script_begin[], ringscope_encyclopedia_script_end[];
asm(".section .rodata\n"
    ".global ringscope_encyclopedia_style_begin\n"
    ".global ringscope_encyclopedia_style_end\n"
    "ringscope_encyclopedia_style_begin: .incbin \"" RINGSCOPE_ENCYCLOPEDIA_ASSETS
    "/style.css\"\n"
    "ringscope_encyclopedia_style_end:\n"
    ".global ringscope_encyclopedia_script_begin\n"
    ".global ringscope_encyclopedia_script_end\n"
    "ringscope_encyclopedia_script_begin: .incbin \"" RINGSCOPE_ENCYCLOPEDIA_ASSETS
    "/script.js\"\n"
    "ringscope_encyclopedia_script_end:\n"
    ".byte 0\n"
    ".previous\n");

namespace ringscope::encyclopedia {

const char kMarker[] =
    "<!DOCTYPE html>\n<!-- Ringscope encyclopedia. Written by `ringscope explain --html`, which replaces it. -->\n";

namespace {

absl::string_view Style() {
  return {ringscope_encyclopedia_style_begin,
          static_cast<size_t>(ringscope_encyclopedia_style_end - ringscope_encyclopedia_style_begin)};
}

absl::string_view Script() {
  return {ringscope_encyclopedia_script_begin,
          static_cast<size_t>(ringscope_encyclopedia_script_end - ringscope_encyclopedia_script_begin)};
}

std::string HashOf(absl::string_view text) {
  const auto hash = report::html::Sha256({text.data(), text.size()});
  return absl::StrCat("'sha256-", absl::Base64Escape({reinterpret_cast<const char*>(hash.data()), hash.size()}), "'");
}

// Nothing may be loaded or run but this very style and this very script.
const std::string& Policy() {
  static const std::string& policy =
      *new std::string(absl::StrCat("default-src 'none'; style-src ", HashOf(Style()), "; script-src ", HashOf(Script()),
                                    "; base-uri 'none'; form-action 'none'"));
  return policy;
}

constexpr struct {
  const char* file;
  const char* label;
} kSite[] = {{"index.html", "Failures"},
             {"errors.html", "Errors and lines"},
             {"xid.html", "Xid"},
             {"completions.html", "InfiniBand status"},
             {"variables.html", "Variables"}};

}  // namespace

std::string Render(const Frame& frame) {
  std::string site;
  for (const auto& [file, label] : kSite) {
    absl::StrAppend(&site, "<li><a href=\"", file, "\"", frame.file == file ? " aria-current=\"page\"" : "", ">", label,
                    "</a></li>");
  }
  return absl::StrCat(
      kMarker, "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"",
      Policy(),
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      Escaped(frame.title), "</title>\n<style>", Style(), "</style>\n</head>\n<body>\n",
      "<a class=\"skip\" href=\"#main\">Skip to the text</a>\n<header><a class=\"brand\" href=\"index.html\">Ringscope"
      "<span> encyclopedia</span></a>\n<nav aria-label=\"Pages\"><ul>",
      site, "</ul></nav></header>\n<div class=\"", frame.aside.empty() ? "page" : "page two", "\">\n",
      frame.aside.empty() ? "" : absl::StrCat("<aside>", frame.aside, "</aside>\n"), "<main id=\"main\" tabindex=\"-1\">\n",
      frame.main,
      "</main>\n</div>\n<footer><p>Keys: <kbd>/</kbd> search, <kbd>&uarr;</kbd> <kbd>&darr;</kbd> results, "
      "<kbd>Enter</kbd> open. Works without network; nothing leaves this page.</p></footer>\n"
      "<div id=\"said\" class=\"hidden\" role=\"status\" aria-live=\"polite\"></div>\n",
      frame.data.empty() ? "" : absl::StrCat("<script type=\"application/json\" id=\"data\">", frame.data, "</script>\n"),
      "<script>", Script(), "</script>\n</body>\n</html>\n");
}

std::string RoleName(catalog::Role::Value role) {
  switch (role) {
    case catalog::Role::cause:
      return "names the fault";
    case catalog::Role::symptom:
      return "reason may lie elsewhere";
    case catalog::Role::collateral:
      return "normally a consequence";
    case catalog::Role::harmless:
      return "harmless";
    case catalog::Role::instruction:
      return "says what to do";
    case catalog::Role::context:
      return "a fact, no error";
    default:
      return "";
  }
}

std::string RoleBadge(catalog::Role::Value role) {
  return absl::StrCat("<span class=\"badge role-", catalog::Role::Value_Name(role), "\">", RoleName(role), "</span>");
}

std::string XidRoleName(catalog::XidEntry::Role role) {
  switch (role) {
    case catalog::XidEntry::initiating:
      return "where it began";
    case catalog::XidEntry::collateral:
      return "consequence of another one";
    case catalog::XidEntry::secondary:
      return "often the other end's fault";
    case catalog::XidEntry::application:
      return "mostly the program";
    case catalog::XidEntry::precursor:
      return "a warning";
    case catalog::XidEntry::instruction:
      return "says what to do";
    default:
      return "";
  }
}

std::string CodeAnchor(const catalog::CodeEntry& code) {
  switch (code.table()) {
    case catalog::CodeEntry::ib_completion:
      return absl::StrCat("status-", code.number());
    case catalog::CodeEntry::cuda_error:
      return absl::StrCat("cuda-", code.number());
    default:
      return absl::StrCat("result-", code.number());
  }
}

std::string CodePage(const catalog::CodeEntry& code) {
  return absl::StrCat(code.table() == catalog::CodeEntry::ib_completion ? "completions.html#" : "errors.html#", CodeAnchor(code));
}

std::string CodeLabel(const catalog::CodeEntry& code) {
  const char* kind = code.table() == catalog::CodeEntry::ib_completion ? "InfiniBand status "
                     : code.table() == catalog::CodeEntry::cuda_error  ? "CUDA error "
                                                                       : "NCCL result ";
  return absl::StrCat(kind, code.number(), " ", code.name());
}

bool Shown(const catalog::Signature& signature) { return signature.role() != catalog::Role::context; }

}  // namespace ringscope::encyclopedia
