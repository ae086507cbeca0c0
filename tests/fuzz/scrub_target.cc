// A text through `ringscope scrub`, with a secret, a host and a user put between the bytes.
#include <cstdlib>

#include "analyzer/ingest/byte_source.h"
#include "analyzer/scrub/scrub_record.h"
#include "analyzer/scrub/scrub_text.h"
#include "catalog/catalog.h"
#include "tests/fuzz/targets.h"

namespace ringscope::fuzz {
namespace {

constexpr char kSecret[] = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

std::string Scrubbed(std::string_view text) {
  scrub::Masks masks;
  scrub::Scrubber scrubber(&masks);
  (void)scrub::LearnText(ingest::BytesSource(text).get(), &scrubber);
  scrubber.Learned();
  std::string out;
  (void)scrub::ScrubText(ingest::BytesSource(text).get(), &scrubber, [&](std::string_view piece) {
    out += piece;
    return absl::OkStatus();
  });
  return out;
}

void Run(std::string_view bytes) {
  // On lines of their own, the first with nothing before it: whatever the bytes are, they are text in a language of one byte.
  const std::string text = std::string("wolpertinger17:70:88 [0] NCCL INFO x\n") + std::string(bytes) + "\n" + kSecret +
                           "\nsaid wolpertinger17 here\n" + std::string(bytes);
  const std::string out = Scrubbed(text);
  // A block of a key may have been begun by the bytes, which then swallows what looks like one; nothing else may take lines away.
  if (out.find(kSecret) != out.npos || out.find("wolpertinger17") != out.npos) abort();
  Scrubbed(bytes);
  trace::Trace trace;
  if (trace.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    scrub::Masks masks;
    scrub::Scrubber scrubber(&masks);
    scrub::LearnTrace(trace, &scrubber);
    scrubber.Learned();
    (void)scrub::TraceBytes(trace, false, &scrubber);
  }
  uint64_t dropped = 0;
  scrub::Masks masks;
  scrub::Scrubber scrubber(&masks);
  (void)scrub::StreamBytes(bytes, &scrubber, &dropped);
  (void)scrub::JsonOfPickle(bytes);
  (void)masks.Load(bytes, "map");
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      "user=alice password: \"a b\\\"c\" https://u:p@h.acme.com/x\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE "
      "KEY-----\n",
      "fe80::a088:c203:0:1204 10.1.2.3<40> 0c:42:a1:65:1a:2c gpu[01-03,7] {\"host\": \"n1\"} \x1b[31m[36m %2F \\u0041 \\/ ~/x "
      "/a/b.py\n",
      "JobId=12345 SLURM_JOB_NODELIST=node[1-4] slurm-12345.out Serial Number: 1654922003541 "
      "GPU-8f6e2c1d-3b4a-5c6d-7e8f-901234567890\n",
      "ringscope scrub map 1\nhost\t1\tn1\nip4\tf0000001\t0a000001\n"};
  std::string examples;
  for (const auto& signature : catalog::Signatures().signature()) {
    for (const auto& example : signature.examples()) examples += example + "\n";
  }
  seeds.push_back(examples.substr(0, 8000));
  return seeds;
}

}  // namespace

Target ScrubTarget() { return {"scrub", Run, Seeds}; }

}  // namespace ringscope::fuzz
