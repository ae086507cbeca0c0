#include "analyzer/timeline/writers.h"
#include "proto/perfetto.pb.h"

namespace ringscope::timeline {
namespace {

constexpr uint32_t kSequence = 1;
constexpr uint64_t kNotes = 1;  // uuid of the track of notes
uint64_t ProcessUuid(size_t process) { return 1000 + process; }
uint64_t LaneUuid(size_t lane) { return 1000000000 + lane; }

class Writer {
 public:
  explicit Writer(const Timeline& t) : t_(t) {}
  std::string Run() {
    Tracks();
    for (const Slice& s : t_.slices) Write(s);
    return std::move(out_);
  }

 private:
  // Each packet is a field of the Trace message by itself: no more than one is in memory.
  void Put(const perfetto::TracePacket& packet) {
    perfetto::Trace one;
    *one.add_packet() = packet;
    one.AppendToString(&out_);
  }

  void Tracks() {
    perfetto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    auto* track = packet.mutable_track_descriptor();
    track->set_uuid(0);
    track->set_process_ordering(perfetto::TrackDescriptor::BY_RANK);
    Put(packet);
    for (size_t i = 0; i < t_.processes.size(); ++i) {
      track->Clear();
      track->set_uuid(ProcessUuid(i));
      track->set_sibling_order_rank(static_cast<int32_t>(i));
      track->set_thread_ordering(perfetto::TrackDescriptor::BY_RANK);
      track->mutable_process()->set_pid(static_cast<int32_t>(i + 1));
      track->mutable_process()->set_process_name(t_.processes[i].name);
      Put(packet);
    }
    for (size_t i = 0; i < t_.lanes.size(); ++i) {
      track->Clear();
      track->set_uuid(LaneUuid(i));
      track->set_parent_uuid(ProcessUuid(static_cast<size_t>(t_.lanes[i].process)));
      track->set_sibling_order_rank(static_cast<int32_t>(i));
      auto* thread = track->mutable_thread();
      thread->set_pid(t_.lanes[i].process + 1);
      thread->set_tid(static_cast<int32_t>(100000 + i));
      thread->set_thread_name(t_.lanes[i].name);
      Put(packet);
    }
    if (t_.notes.empty()) return;
    track->Clear();
    track->set_uuid(kNotes);
    track->set_name("Ringscope: what is not here");
    Put(packet);
    packet.clear_track_descriptor();
    int64_t first = t_.slices.empty() ? 0 : t_.slices[0].begin_ns;
    for (const Slice& s : t_.slices) first = std::min(first, s.begin_ns);
    packet.set_timestamp(static_cast<uint64_t>(std::max<int64_t>(first, 0)));
    for (const std::string& note : t_.notes) {
      auto* event = packet.mutable_track_event();
      event->Clear();
      event->set_type(perfetto::TrackEvent::INSTANT);
      event->set_track_uuid(kNotes);
      event->set_name(note);
      Put(packet);
    }
  }

  void Write(const Slice& s) {
    perfetto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_timestamp(static_cast<uint64_t>(std::max<int64_t>(s.begin_ns, 0)));
    auto* event = packet.mutable_track_event();
    event->set_type(perfetto::TrackEvent::SLICE_BEGIN);
    event->set_track_uuid(LaneUuid(static_cast<size_t>(s.lane)));
    event->set_name(s.name);
    event->add_categories(CategoryName(s.category));
    for (const auto& [name, value] : s.details) {
      auto* annotation = event->add_debug_annotations();
      annotation->set_name(name);
      annotation->set_string_value(value);
    }
    if (s.flow_out != 0) event->add_flow_ids(s.flow_out);
    if (s.flow_in != 0) event->add_terminating_flow_ids(s.flow_in);
    Put(packet);
    event->Clear();
    event->set_type(perfetto::TrackEvent::SLICE_END);
    event->set_track_uuid(LaneUuid(static_cast<size_t>(s.lane)));
    packet.set_timestamp(static_cast<uint64_t>(std::max<int64_t>(s.end_ns, 0)));
    Put(packet);
  }

  const Timeline& t_;
  std::string out_;
};

}  // namespace

std::string Perfetto(const Timeline& timeline) { return Writer(timeline).Run(); }

}  // namespace ringscope::timeline
