// What looks secret in environment values and command lines (identity.h: AddMasked).
#include <string.h>

#include "recorder/identity.h"

namespace ringscope::recorder {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// `word` is in lower case.
bool Contains(const char* text, size_t size, const char* word) {
  const size_t n = strlen(word);
  for (size_t i = 0; i + n <= size; ++i) {
    size_t k = 0;
    while (k < n && Lower(text[i + k]) == word[k]) ++k;
    if (k == n) return true;
  }
  return false;
}

bool SecretName(const char* name, size_t size) {
  static constexpr const char* kWords[] = {"token", "secret", "passw", "credential", "auth", "key"};
  for (const char* word : kWords) {
    if (Contains(name, size, word)) return true;
  }
  return false;
}

bool TokenChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-' || c == '+';
}

bool RandomLooking(const char* run, size_t size) {
  size_t upper = 0, lower = 0, digits = 0, hex = 0;
  for (size_t i = 0; i < size; ++i) {
    const char c = run[i];
    const bool digit = c >= '0' && c <= '9';
    digits += digit;
    upper += c >= 'A' && c <= 'Z';
    lower += c >= 'a' && c <= 'z';
    hex += digit || (Lower(c) >= 'a' && Lower(c) <= 'f');
  }
  if (size >= 40 && hex == size && digits) return true;
  return size >= 32 && upper && lower && digits;
}

bool SecretRun(const char* run, size_t size) {
  static constexpr const char* kPrefixes[] = {"hf_",         "ghp_",   "gho_", "ghs_",
                                              "github_pat_", "glpat-", "sk-",  "xoxb-",
                                              "xoxp-",       "AKIA",   "ASIA", "eyJ"};
  for (const char* prefix : kPrefixes) {
    if (size >= 16 && strncmp(run, prefix, strlen(prefix)) == 0) return true;
  }
  // Parts between hyphens count by themselves: a UUID is no secret.
  for (size_t i = 0; i < size;) {
    size_t end = i;
    while (end < size && run[end] != '-') ++end;
    if (RandomLooking(run + i, end - i)) return true;
    i = end + 1;
  }
  return false;
}

// "Bearer", in any case: the next word is a credential.
bool Bearer(const char* run, size_t size) { return size == 6 && Contains(run, size, "bearer"); }

// Masks credentials of URLs, bearer tokens and long tokens inside a value that is otherwise shown.
void AddValue(Text& out, const char* value, size_t size) {
  size_t i = 0;
  while (i < size) {
    // scheme://user:password@host
    if (size - i > 3 && memcmp(value + i, "://", 3) == 0) {
      out.Add("://");
      i += 3;
      size_t end = i;
      size_t at = 0;
      while (end < size && value[end] != '/' && value[end] != ' ' && value[end] != '"') {
        if (value[end] == '@') at = end;
        ++end;
      }
      if (at) {
        out.Add("***");
        i = at;
      }
      continue;
    }
    if (TokenChar(value[i])) {
      size_t end = i;
      while (end < size && TokenChar(value[end])) ++end;
      if (SecretRun(value + i, end - i)) {
        out.Add("***");
      } else {
        out.Add(value + i, end - i);
      }
      if (Bearer(value + i, end - i)) {
        while (end < size && value[end] == ' ') out.AddChar(value[end++]);
        const size_t word = end;
        while (end < size && value[end] != ' ' && value[end] != '"' && value[end] != '\'') ++end;
        if (end > word) out.Add("***");
      }
      i = end;
      continue;
    }
    const char c = value[i++];
    out.AddChar(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c);
  }
  // user:password@host without a scheme is caught by the caller, which knows that a name stands
  // before it.
}

// "user:password@..." at the start of a value.
size_t BareCredentials(const char* value, size_t size) {
  size_t colon = 0;
  for (size_t i = 0; i < size; ++i) {
    const char c = value[i];
    if (c == ':' && i > 0 && !colon) colon = i;
    if (c == '@') return colon && i > colon + 1 ? i : 0;
    if (c == '/' || c == ' ' || c == ',') return 0;
  }
  return 0;
}

void AddShown(Text& out, const char* value, size_t size) {
  const size_t at = BareCredentials(value, size);
  if (at) {
    out.Add("***");
    value += at;
    size -= at;
  }
  AddValue(out, value, size);
}

}  // namespace

void AddMasked(Text& out, const char* name, const char* value) {
  const size_t size = strlen(value);
  if (size && SecretName(name, strlen(name))) {
    out.Add("***");
    return;
  }
  AddShown(out, value, size);
}

void AddMaskedCommandLine(Text& out, const char* arguments, size_t size) {
  bool mask_next = false;
  for (size_t i = 0; i < size;) {
    const char* argument = arguments + i;
    const size_t n = strnlen(argument, size - i);
    i += n + 1;
    if (argument != arguments) out.AddChar(' ');
    if (mask_next && argument[0] != '-') {
      out.Add("***");
      mask_next = false;
      continue;
    }
    mask_next = false;
    const char* equals = static_cast<const char*>(memchr(argument, '=', n));
    const size_t name = equals ? static_cast<size_t>(equals - argument) : n;
    const bool secret = SecretName(argument, name);
    if (equals && secret && name < 64) {
      AddShown(out, argument, name);
      out.Add("=***");
      continue;
    }
    mask_next =
        (argument[0] == '-' && !equals && secret) || (n >= 6 && Bearer(argument + n - 6, 6));
    // In a URL or header `=` does not end a name; it may stand in the very credential.
    if (equals && !memchr(argument, ':', name)) {
      out.Add(argument, name + 1);
      AddShown(out, equals + 1, n - name - 1);
    } else {
      AddShown(out, argument, n);
    }
  }
}

}  // namespace ringscope::recorder
