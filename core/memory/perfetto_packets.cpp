// Perfetto's own format: packets of protobuf, each about one track.
#include <perfetto.pb.h>

#include <map>
#include <tuple>

#include "ebb/core/memory/json.h"
#include "ebb/core/memory/trace.h"

namespace ebb::memory::detail {

namespace {
using perfetto::TrackEvent;

class PacketTrace final : public Trace {
 public:
  explicit PacketTrace(const std::string& path) : file_(path) {}

  void begin_process(const std::string& name, const std::vector<Tag>& tags) override {
    tags_ = tags;
    tracks_.clear();
    process_ = ++last_track_;
    perfetto::TrackDescriptor& track = *next_packet().mutable_track_descriptor();
    track.set_uuid(process_);
    track.mutable_process()->set_pid(++processes_);
    track.mutable_process()->set_process_name(utf8(name));
  }

  void allocated(std::int64_t at, const ByCategory& bytes) override {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < kCategoryCount; ++i) {
      count(at, std::string("allocated: ") + memory::name(static_cast<Category>(i)), bytes[i]);
      sum += bytes[i];
    }
    count(at, "allocated", sum);
  }

  void reserved(std::int64_t at, std::size_t bytes) override { count(at, "reserved", bytes); }

  void step(std::int64_t begin, std::int64_t end, std::size_t number) override {
    const std::uint64_t track = track_of("steps");
    add(begin, track, TrackEvent::TYPE_SLICE_BEGIN).set_name("step " + std::to_string(number));
    add(end, track, TrackEvent::TYPE_SLICE_END);
  }

  void mark(std::int64_t at, const char* name) override {
    add(at, process_, TrackEvent::TYPE_INSTANT).set_name(utf8(name));
  }

  void open(std::int64_t at, const Part& part) override {
    const Tag& tag = tags_[part.tag];
    TrackEvent& event = add(at, track_of(part), TrackEvent::TYPE_SLICE_BEGIN);
    const auto argument = [&](const char* name) {
      auto* annotation = event.add_debug_annotations();
      annotation->set_name(name);
      return annotation;
    };
    event.set_name(utf8(tag.operator_name));
    event.add_categories(memory::name(part.category));
    argument("bytes")->set_uint_value(part.bytes);
    argument("line")->set_string_value(utf8(tag.file) + ":" + std::to_string(tag.line));
    argument("layer")->set_string_value(utf8(tag.layer));
  }

  void close(std::int64_t at, const Part& part) override {
    add(at, track_of(part), TrackEvent::TYPE_SLICE_END);
  }

  void commit() override {
    next_packet();
    file_.commit();
  }

 private:
  // Writes the packet before. Messages of one packet each, one after the other, are a trace.
  perfetto::TracePacket& next_packet() {
    trace_.AppendToString(&file_.text());
    trace_.Clear();
    return *trace_.add_packet();
  }

  TrackEvent& add(std::int64_t at, std::uint64_t track, TrackEvent::Type type) {
    perfetto::TracePacket& packet = next_packet();
    packet.set_timestamp(static_cast<std::uint64_t>(at));
    packet.set_trusted_packet_sequence_id(1);
    TrackEvent& event = *packet.mutable_track_event();
    event.set_type(type);
    event.set_track_uuid(track);
    return event;
  }

  void count(std::int64_t at, const std::string& name, std::size_t bytes) {
    add(at, track_of(name, {}, true), TrackEvent::TYPE_COUNTER)
        .set_counter_value(static_cast<std::int64_t>(bytes));
  }

  // Slices of one track must not overlap: parts share one by tag, category and address.
  std::uint64_t track_of(const Part& part) {
    return track_of(utf8(tags_[part.tag].operator_name), {part.tag, part.category, part.address});
  }

  using Identity = std::tuple<std::size_t, Category, std::uintptr_t>;
  std::uint64_t track_of(const std::string& name, const Identity& of = {}, bool counts = false) {
    const auto [place, is_new] = tracks_.try_emplace({name, of}, last_track_ + 1);
    if (is_new) {
      perfetto::TrackDescriptor& track = *next_packet().mutable_track_descriptor();
      track.set_uuid(++last_track_);
      track.set_name(name);
      track.set_parent_uuid(process_);
      if (counts) track.mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
    }
    return place->second;
  }

  PieceFile file_;
  perfetto::Trace trace_;  // of the packet that is being made
  std::vector<Tag> tags_;
  std::map<std::pair<std::string, Identity>, std::uint64_t> tracks_;  // of this process
  std::uint64_t process_ = 0, last_track_ = 0;
  int processes_ = 0;
};

}  // namespace

std::unique_ptr<Trace> make_packet_trace(const std::string& path) {
  return std::make_unique<PacketTrace>(path);
}

}  // namespace ebb::memory::detail
