// The first pass over the tables, and what it tells that could not be seen: a reader of the trace
// must never take "not seen" for "did not happen".
#include "recorder/flight/encoder.h"
#include "recorder/flight/text.h"

namespace ringscope::flight {
namespace {

constexpr uint32_t kEventKernelCh = 0x40, kEventProxyOp = 0x8, kEventProxyStep = 0x10,
                   kEventColl = 0x2;

void Newest(uint64_t* newest, uint64_t ticks) {
  if (ticks > *newest) *newest = ticks;
}

void SurveyComm(Encoder* e, uint32_t index) {
  const CommRow& comm = e->image.comms[index];
  Survey& s = e->survey;
  if (!CommUsed(Load(comm.stamp))) return;
  ++s.comms;
  const uint64_t flags = Load(comm.flags);
  if (!(flags & kCommCompletionVisible)) {
    ++s.invisible;
    const uint64_t api = Load(comm.stamp) >> 32 & 0xff;
    if (api >= 3 && !(EventMask(e->image) & kEventKernelCh)) ++s.unasked;
  }
  if (!(flags & kCommApiEvents)) ++s.without_api;
  s.no_row += Load(comm.no_row);
  Newest(&s.newest_callback, Load(comm.created));
  Newest(&s.newest_callback, Load(comm.finalized));
  Newest(&s.newest_callback, Load(comm.last_progress));
  CommFacts facts = FactsOf(comm, index, e->image.ops.count);
  if ((Load(comm.ring) >> 32) + 1 > facts.rows) ++s.rings_cut;
  ScanLaunched(e->image.ops.rows, &facts);
  for (uint32_t i = 0; i < facts.rows; ++i) {
    OpView op;
    if (!ReadOp(e->image.ops[facts.base + i], facts.base + i, facts, &op)) continue;
    Newest(&s.newest_callback, op.NewestTicks());
    if (op.open) s.comm_open[index] = 1;
    if (op.flags & kOpCopyEngine) ++s.copy_engine;
    if (op.flags & kOpTail) ++s.tails;
    if (op.passed && !op.launched) ++s.never_launched;
  }
}

// One sentence a call: Say().Text("...").
class Sentence : public TextBuffer<384> {
 public:
  explicit Sentence(Encoder* e) : e_(e) {}
  ~Sentence() { e_->w.StringAlways(11, c_str(), size()); }

 private:
  Encoder* e_;
};

void Lost(Encoder* e, Counter which, const char* what) {
  const uint32_t i = static_cast<uint32_t>(which);
  const uint64_t n = i < e->image.counters.count ? Load(e->image.counters[i]) : 0;
  if (n) Sentence(e).AddUint(n).Add(what);
}

void ByMask(Encoder* e) {
  const uint32_t mask = EventMask(e->image);
  if (!(mask & kEventColl)) {
    Sentence(e).Add("Collective operations: their events were not asked for (RINGSCOPE_EVENTS).");
  }
  if (!(mask & (kEventProxyOp | kEventProxyStep))) {
    Sentence(e).Add("Network connections: their events were not asked for (RINGSCOPE_EVENTS).");
  } else if (!(mask & kEventProxyStep)) {
    Sentence(e).Add(
        "Steps on network connections: their events were not asked for (RINGSCOPE_EVENTS).");
  }
}

void ByCommunicator(Encoder* e) {
  const Survey& s = e->survey;
  if (s.invisible) {
    Sentence(e)
        .Add("Start and end of operations on the GPU, in ")
        .AddUint(s.invisible)
        .Add(" of ")
        .AddUint(s.comms)
        .Add(s.unasked == 0 ? " communicators: this release of NCCL does not report them."
                            : " communicators: KernelCh events were not asked for.");
  }
  if (s.without_api) {
    Sentence(e)
        .Add("Calls into NCCL, in ")
        .AddUint(s.without_api)
        .Add(" of ")
        .AddUint(s.comms)
        .Add(
            " communicators: this release of NCCL does not report them; operations are known from "
            "their launch on.");
  }
  if (s.foreign_edges) {
    Sentence(e)
        .AddUint(s.foreign_edges)
        .Add(
            " connections driven here carry data of other processes (PXN); which of their "
            "operations, only their own records tell.");
  }
  if (s.copy_engine) {
    Sentence(e)
        .AddUint(s.copy_engine)
        .Add(" operations were done by copy engines: their end is not visible.");
  }
  if (s.never_launched) {
    Sentence(e)
        .AddUint(s.never_launched)
        .Add(
            " operations: NCCL reported the call, but neither launch nor end (kinds that it does "
            "not "
            "instrument); later ones show that they are over.");
  }
  if (s.tails) {
    Sentence(e)
        .Add("Single point-to-point tasks of ")
        .AddUint(s.tails)
        .Add(" large groups: beyond the eighth of a group they share one row.");
  }
  if (s.no_row) {
    Sentence(e).AddUint(s.no_row).Add(
        " operations found no free row (too many open at once); they are counted in the "
        "positions.");
  }
}

}  // namespace

void TakeSurvey(Encoder* e) {
  Survey& s = e->survey;
  for (uint32_t i = 0; i < e->image.comms.count; ++i) SurveyComm(e, i);
  for (uint32_t i = 0; i < e->image.edges.count; ++i) {
    const uint64_t stamp = Load(e->image.edges[i].stamp);
    if (stamp >> 63 == 0) continue;
    Newest(&s.newest_callback, Load(e->image.edges[i].changed));
    if (stamp >> 24 & kEdgeForeign) ++s.foreign_edges;
  }
  for (uint32_t i = 0; i < e->image.threads.count; ++i) {
    if (Load(e->image.threads[i].tid)) Newest(&s.newest_callback, Load(e->image.threads[i].since));
  }
  e->written = e->options.written_ticks;
  if (e->written == 0) {
    e->written = Load(e->image.header->heartbeat);
    Newest(&e->written, s.newest_callback);
  }
}

void EncodeNotSeen(Encoder* e) {
  const ImageView& image = e->image;
  if (image.missing_bytes) {
    Sentence(e)
        .Add("The end of the flight file: ")
        .AddUint(image.size)
        .Add(" of ")
        .AddUint(image.header->file_bytes)
        .Add(" bytes are there.");
  }
  if (image.comms.count < image.comms.meant || image.ops.count < image.ops.meant ||
      image.edges.count < image.edges.meant) {
    Sentence(e)
        .Add("Rows that the flight file should have: communicators ")
        .AddUint(image.comms.count)
        .Add(" of ")
        .AddUint(image.comms.meant)
        .Add(", operations ")
        .AddUint(image.ops.count)
        .Add(" of ")
        .AddUint(image.ops.meant)
        .Add(", edges ")
        .AddUint(image.edges.count)
        .Add(" of ")
        .AddUint(image.edges.meant)
        .Add(" could be read.");
  }
  ByMask(e);
  ByCommunicator(e);
  if (e->survey.rings_cut) {
    Sentence(e)
        .Add("Operations of ")
        .AddUint(e->survey.rings_cut)
        .Add(" communicators whose rows lie outside the file or are more than are read.");
  }
  Lost(e, Counter::kCommNoRow, " communicators found no free row; nothing of them is recorded.");
  Lost(e, Counter::kEdgeNoRow, " proxy operations found no free row for their connection.");
  Lost(e, Counter::kThreadNoRow,
       " threads found no free row; their calls in flight are not shown.");
  Lost(e, Counter::kTraceFailed, " traces could not be written.");
  Lost(e, Counter::kTraceDropped, " traces were not written: more than RINGSCOPE_TRACES.");
  if (Load(image.header->state) & kStatePrivateMemory) {
    Sentence(e).Add(
        "A sudden death: no flight file could be made, so this process records in memory only.");
  }
}

}  // namespace ringscope::flight
