// Chrome's Trace Event Format, which ui.perfetto.dev and chrome://tracing open.
#include <spdlog/fmt/fmt.h>

#include <iterator>

#include "ebb/core/memory/json.h"
#include "ebb/core/memory/trace.h"

namespace ebb::memory::detail {

namespace {

class JsonTrace final : public Trace {
 public:
  explicit JsonTrace(const std::string& path) : file_(path) {
    file_.text() = R"({"traceEvents":[)";
  }

  void begin_process(const std::string& name, const std::vector<Tag>& tags) override {
    ++id_;
    tags_.clear();
    for (const Tag& tag : tags)
      tags_.push_back({json_string(tag.operator_name),
                       json_string(fmt::format("{}:{}", tag.file, tag.line)),
                       json_string(tag.layer)});
    add('M', 0, R"("name":"process_name","args":{{"name":{}}})", json_string(name));
    add('M', 0, R"("name":"thread_name","args":{{"name":"steps"}})");
  }

  void allocated(std::int64_t at, const ByCategory& bytes) override {
    std::string split;
    std::size_t sum = 0;
    for (std::size_t i = 0; i < kCategoryCount; ++i) {
      split += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",",
                           memory::name(static_cast<Category>(i)), bytes[i]);
      sum += bytes[i];
    }
    add('C', at, R"("name":"allocated by category","args":{{{}}})", split);
    add('C', at, R"("name":"allocated","args":{{"bytes":{}}})", sum);
  }

  void reserved(std::int64_t at, std::size_t bytes) override {
    add('C', at, R"("name":"reserved","args":{{"bytes":{}}})", bytes);
  }

  void step(std::int64_t begin, std::int64_t end, std::size_t number) override {
    add('X', begin, R"("dur":{},"name":"step {}")", microseconds(end - begin), number);
  }

  void mark(std::int64_t at, const char* name) override {
    add('i', at, R"("s":"p","name":{})", json_string(name));
  }

  void open(std::int64_t at, const Part& part) override {
    const TagText& tag = tags_[part.tag];
    add('b', at, R"({},"args":{{"bytes":{},"line":{},"layer":{}}})", text_of(part), part.bytes,
        tag.line, tag.layer);
  }

  void close(std::int64_t at, const Part& part) override { add('e', at, "{}", text_of(part)); }

  void commit() override {
    file_.text() += "\n]}\n";
    file_.commit();
  }

 private:
  static std::string microseconds(std::int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }

  template <class... Args>
  void add(char phase, std::int64_t at, fmt::format_string<Args...> text, Args&&... args) {
    std::string& to = file_.text();
    fmt::format_to(std::back_inserter(to), R"({}{{"ph":"{}","pid":{},"tid":{},"ts":{},)",
                   to.ends_with('[') ? "\n" : ",\n", phase, id_, id_, microseconds(at));
    fmt::format_to(std::back_inserter(to), text, std::forward<Args>(args)...);
    to += '}';
  }

  // Perfetto makes a track of each identity in a category, named after its first slice.
  std::string text_of(const Part& part) {
    return fmt::format(R"("cat":"{}","id2":{{"local":"{:#x} {}"}},"name":{})",
                       memory::name(part.category), part.address, part.tag, tags_[part.tag].name);
  }

  struct TagText {
    std::string name, line, layer;  // in quotes
  };

  PieceFile file_;
  std::size_t id_ = 0;
  std::vector<TagText> tags_;
};

}  // namespace

std::unique_ptr<Trace> make_json_trace(const std::string& path) {
  return std::make_unique<JsonTrace>(path);
}

}  // namespace ebb::memory::detail
