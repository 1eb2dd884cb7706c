#include "ebb/core/memory/recording_json.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

namespace ebb::memory::detail {

namespace {
using Json = nlohmann::ordered_json;

// Tags by what they say: one line of a header has several addresses.
class TagTable {
 public:
  std::size_t index_of(const Event& event) {
    const auto [place, is_new] =
        indices_.try_emplace({event.operator_name, event.file, event.line}, indices_.size());
    if (is_new)
      tags_.push_back(
          {{"operator", event.operator_name}, {"file", event.file}, {"line", event.line}});
    return place->second;
  }
  const Json& tags() const noexcept { return tags_; }

 private:
  std::map<std::tuple<std::string_view, std::string_view, std::uint32_t>, std::size_t> indices_;
  Json tags_ = Json::array();
};

// Text that is passed on in large pieces.
class Rows {
 public:
  explicit Rows(const std::function<void(std::string_view)>& write) : write_(write) {}

  template <class... Numbers>
  void add(Numbers... numbers) {
    text_ += is_first_ ? "\n[" : ",\n[";
    is_first_ = false;
    (put(numbers), ...);
    text_.back() = ']';
    if (text_.size() > kPiece) flush();
  }
  void flush() {
    write_(text_);
    text_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 20;

  template <class Number>
  void put(Number number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(digits, end);
    text_ += ',';
  }

  const std::function<void(std::string_view)>& write_;
  std::string text_;
  bool is_first_ = true;
};

// Whatever a file is called.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json names_of_categories() {
  Json names = Json::array();
  for (std::size_t i = 0; i < kCategoryCount; ++i) names.push_back(name(static_cast<Category>(i)));
  return names;
}
}  // namespace

void write_recording(std::string_view device, const EventLog::Reading& reading,
                     const std::function<void(std::string_view)>& write) {
  Json by_category = Json::object(), kinds = Json::array();
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    by_category[name(static_cast<Category>(i))] = reading.before.allocated[i];
  for (std::size_t i = 0; i < kEventKindCount; ++i)
    kinds.push_back(name(static_cast<EventKind>(i)));
  TagTable tags;
  for (const Event& event : reading.events) tags.index_of(event);

  const Json head = {
      {"format", "ebb memory recording"},
      {"version", 1},
      {"device", device},
      {"dropped", reading.dropped},
      {"before", {{"allocated_bytes", by_category}, {"reserved_bytes", reading.before.reserved}}},
      {"kinds", kinds},
      {"categories", names_of_categories()},
      {"tags", tags.tags()},
      {"columns", {"nanoseconds", "kind", "address", "bytes", "category", "old_category", "tag"}}};
  std::string text = text_of(head);
  text.back() = ',';  // the object goes on
  write(text + "\"events\":[");
  Rows rows(write);
  for (const Event& event : reading.events)
    rows.add(event.nanoseconds, static_cast<int>(event.kind),
             reinterpret_cast<std::uintptr_t>(event.address), event.bytes,
             static_cast<int>(event.category), static_cast<int>(event.before),
             tags.index_of(event));
  rows.flush();
  write("]}\n");
}

}  // namespace ebb::memory::detail
