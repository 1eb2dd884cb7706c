#include "ebb/tests/properties/stateful_program.h"

#include <algorithm>
#include <random>
#include <set>

#include "ebb/core/ops/shape_rules.h"

namespace ebb::tests {

namespace {

// State of a tensor that several values may name: an update's result is its target.
struct Handle {
  bool has_history = false;  // certainly, in eager
  bool may_have_history = false;
  bool is_detached = false;
  bool is_recomputed = false;       // the result of a region
  bool is_of_higher_order = false;  // made of a gradient that has a history
  bool is_captured = false;         // by a recomputed region's function, which its record keeps
  int tied = 0;                     // the version of the memory that the history belongs to
  std::set<int> parameters;         // reached by a gradient
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) { program_.seed = seed; }

  StatefulProgram draw_program() {
    rows_ = draw(1, 3);
    columns_ = chance(2) ? rows_ : draw(1, 3);
    declare();
    const int length = draw(3, 20);
    for (int i = 0; i < length; ++i) {
      Line line;
      for (int tries = 0; tries < 20; ++tries) {
        line = Line();
        line.kind = draw_kind();
        if (draw_line(line)) {
          program_.lines.push_back(line);
          break;
        }
      }
    }
    const int runs = draw(1, 3);
    for (int r = 0; r < runs; ++r) draw_fetches(r);
    return std::move(program_);
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int one_in) { return draw(1, one_in) == 1; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[at(draw(0, static_cast<int>(from.size()) - 1))];
  }
  const Shape& shape(int v) const { return program_.values[at(v)].shape; }
  int memory(int v) const { return program_.values[at(v)].memory; }
  Handle& handle(int v) { return handles_[at(handle_of_[at(v)])]; }
  int& version(int v) { return versions_[at(memory(v))]; }
  bool is_state(int v) const { return program_.memories[at(memory(v))].is_state; }
  bool is_feed(int v) const { return program_.memories[at(memory(v))].is_feed; }

  int add_value(const Shape& shape, int memory, int handle) {
    program_.values.push_back({shape, memory});
    handle_of_.push_back(handle);
    concrete_.push_back(false);
    pool_.push_back(static_cast<int>(program_.values.size()) - 1);
    return pool_.back();
  }
  int add_handle(const Handle& handle) {
    handles_.push_back(handle);
    return static_cast<int>(handles_.size()) - 1;
  }
  int add_memory(bool is_state, bool is_feed) {
    program_.memories.push_back({is_state, is_feed});
    versions_.push_back(0);
    written_.push_back(false);
    return static_cast<int>(versions_.size()) - 1;
  }
  // Adds a result in memory of its own, computed from the values `from`.
  int add_result(const Shape& shape, const std::vector<int>& from) {
    Handle result;
    for (const int v : from) inherit(result, handle(v));
    return add_value(shape, add_memory(false, false), add_handle(result));
  }
  static void inherit(Handle& result, const Handle& from) {
    result.has_history |= from.has_history;
    result.may_have_history |= from.may_have_history;
    result.is_of_higher_order |= from.is_of_higher_order;
    result.parameters.insert(from.parameters.begin(), from.parameters.end());
  }

  void declare() {
    const Shape full{rows_, columns_};
    const auto add = [&](StatefulInput::Kind kind, const char* name, const Shape& shape,
                         bool leaf = false) {
      Handle h;
      h.has_history = h.may_have_history = leaf || kind == StatefulInput::parameter;
      const int number = static_cast<int>(program_.inputs.size());
      if (kind == StatefulInput::parameter) {
        h.parameters.insert(number);
        parameters_.push_back(number);
      }
      program_.inputs.push_back({.kind = kind, .name = name, .leaf = leaf});
      const bool is_feed = kind == StatefulInput::feed;
      return add_value(shape, add_memory(!is_feed, is_feed), add_handle(h));
    };
    const auto any_shape = [&] { return chance(4) ? Shape{columns_} : full; };
    add(StatefulInput::parameter, "a.w", full);
    if (chance(2)) add(StatefulInput::parameter, "a.u", any_shape());
    add(StatefulInput::parameter, "b.v", any_shape());
    if (chance(2)) add(StatefulInput::state, "s", full);
    add(StatefulInput::feed, "x", full, chance(2));
    if (chance(3)) {
      const bool leaf = chance(2);
      add(StatefulInput::feed, "y", any_shape(), leaf);
    }
    if (chance(2)) {
      const int base = add(StatefulInput::captured, "c", full, chance(2));
      concrete_[at(base)] = true;
      if (chance(2)) {
        const int begin = draw(0, rows_ - 1), end = draw(begin + 1, rows_);
        program_.inputs.push_back({.kind = StatefulInput::captured_view,
                                   .name = "c_rows",
                                   .base = base,
                                   .begin = begin,
                                   .end = end});
        Handle h;
        h.is_detached = true;
        const int v = add_value({end - begin, columns_}, memory(base), add_handle(h));
        concrete_[at(v)] = true;
      }
    }
  }

  Line::Kind draw_kind() {
    static const std::vector<Line::Kind> weighted = {
        Line::unary,    Line::unary,      Line::number,   Line::binary,   Line::binary,
        Line::binary,   Line::product,    Line::reduce,   Line::like,     Line::expression,
        Line::view,     Line::view,       Line::view,     Line::update,   Line::update,
        Line::update,   Line::update,     Line::update,   Line::gradient, Line::gradient,
        Line::gradient, Line::recomputed, Line::minimize, Line::apply};
    Line::Kind kind = pick(weighted);
    while (inside_ && kind >= Line::gradient) kind = pick(weighted);
    return kind;
  }

  bool is_stale(int v) {
    if (is_state(v) || handle(v).tied == version(v)) return false;
    return handle(v).may_have_history || (written_[at(memory(v))] && !handle(v).is_detached);
  }

  // Draws mostly recent values and aliases of the last updated memory, so that programs are deep.
  // Seldom draws a value that eager would refuse.
  int draw_value() {
    for (int tries = 0;; ++tries) {
      if (updated_ >= 0 && chance(5)) {
        std::vector<int> aliases;
        for (const int other : pool_)
          if (memory(other) == updated_) aliases.push_back(other);
        if (!aliases.empty()) {
          const int v = pick(aliases);
          if (!is_stale(v) || chance(8)) return v;
        }
      }
      const int last = static_cast<int>(pool_.size()) - 1;
      const int v = pool_[at(chance(2) ? draw(std::max(0, last - 5), last) : draw(0, last))];
      if (is_stale(v) && !chance(30) && tries < 50) continue;
      return v;
    }
  }
  // Draws a value that a graph records; returns -1 if it finds none.
  int draw_symbolic() {
    for (int tries = 0; tries < 30; ++tries) {
      const int v = draw_value();
      if (!concrete_[at(v)]) return v;
    }
    return -1;
  }

  static bool joined(const Shape& a, const Shape& b, Shape& result) {
    const Shape& longer = a.rank() >= b.rank() ? a : b;
    const Shape& shorter = a.rank() >= b.rank() ? b : a;
    result = longer;
    for (int i = 1; i <= shorter.rank(); ++i) {
      const std::int64_t p = longer.dim(-i), q = shorter.dim(-i);
      if (p != q && p != 1 && q != 1) return false;
      result.set(-i, std::max(p, q));
    }
    return true;
  }

  bool draw_line(Line& line) {
    line.variant = draw(0, 1000);
    line.constant = 0.25 * draw(-6, 6);
    switch (line.kind) {
      case Line::unary:
      case Line::number: {
        const int a = draw_symbolic();
        if (a < 0) return false;
        line.in = {a};
        line.out = {add_result(shape(a), {a})};
        return true;
      }
      case Line::binary: {
        int a = draw_symbolic(), b = draw_value();
        if (a < 0) return false;
        if (chance(2)) std::swap(a, b);
        Shape result;
        if (!joined(shape(a), shape(b), result)) return false;
        // Multiplies by a concrete b: in a / (square(b) + 1) the divisor would be computed eagerly,
        // and a graph would capture the result.
        if (concrete_[at(b)]) line.variant = line.variant / 4 * 4 + 2;
        line.in = {a, b};
        line.out = {add_result(result, {a, b})};
        return true;
      }
      case Line::product:
        return draw_product(line);
      case Line::reduce:
        return draw_reduce(line);
      case Line::like: {
        const int a = draw_symbolic(), b = draw_value();
        if (a < 0) return false;
        line.in = {a, b};
        switch (line.variant % 3) {
          case 0:
            line.in = {a};
            line.out = {add_result(shape(a), {})};  // a fill
            return true;
          case 1:
            if (!ebb::detail::broadcasts_to(shape(b), shape(a)) || shape(b) == shape(a))
              return false;  // x itself
            line.out = {add_result(shape(b), {a})};
            return true;
          default:
            line.in = {a};
            line.out = {add_result(shape(a), {a})};
            return true;
        }
      }
      case Line::expression: {
        const int a = draw_symbolic(), b = draw_value();
        if (a < 0 || !(shape(a) == shape(b)) || shape(a).rank() == 0) return false;
        line.in = {a, b};
        line.out = {add_result(shape(a), {a, b})};
        return true;
      }
      case Line::view:
        return draw_view(line);
      case Line::update:
        return draw_update(line);
      case Line::gradient:
        return draw_gradient(line);
      case Line::minimize:
      case Line::apply:
        return draw_step(line);
      case Line::recomputed:
        return draw_recomputed(line);
      case Line::kinds:
        break;
    }
    return false;
  }

  bool draw_product(Line& line) {
    int a = draw_symbolic(), b = draw_value();
    if (a < 0) return false;
    if (chance(2)) std::swap(a, b);
    const Shape &s = shape(a), &t = shape(b);
    if (s.rank() != 2 || t.rank() != 2) return false;
    line.in = {a, b};
    Shape result;
    switch (line.variant % 4) {
      case 0:  // a b
      case 1:  // dense
        if (s.dim(1) != t.dim(0)) return false;
        result = {s.dim(0), t.dim(1)};
        break;
      case 2:
        if (s.dim(1) != t.dim(1)) return false;
        result = {s.dim(0), t.dim(0)};
        break;
      default:
        if (s.dim(0) != t.dim(0)) return false;
        result = {s.dim(1), t.dim(1)};
        break;
    }
    line.out = {add_result(result, {a, b})};
    return true;
  }

  bool draw_reduce(Line& line) {
    const int a = draw_symbolic();
    if (a < 0 || shape(a).rank() == 0) return false;
    line.in = {a};
    const int axis = draw(0, shape(a).rank() - 1);
    line.begin = axis;
    const bool keeps = line.variant % 5 < 2;
    Shape result;
    if (line.variant % 5 == 4) {
      line.end = draw(0, static_cast<int>(shape(a).dim(axis)) - 1);  // select
    }
    for (int i = 0; i < shape(a).rank(); ++i)
      if (i != axis)
        result.push_back(shape(a).dim(i));
      else if (keeps)
        result.push_back(1);
    line.out = {add_result(result, {a})};
    return true;
  }

  bool draw_view(Line& line) {
    const int a = draw_symbolic();
    if (a < 0) return false;
    line.in = {a};
    const Shape& s = shape(a);
    Handle result = handle(a);
    result.tied = version(a);
    if (is_stale(a)) result.tied = -1;
    Shape to;
    switch (line.variant % 4) {
      case 0: {
        if (s.rank() == 0) return false;
        const int n = static_cast<int>(s.dim(0));
        line.begin = draw(0, n - 1);
        line.end = draw(static_cast<int>(line.begin) + 1, n);
        to = s;
        to.set(0, line.end - line.begin);
        break;
      }
      case 1: {
        const std::int64_t n = s.elements();
        const std::vector<Shape> shapes = {
            {n}, {n, 1}, {1, n}, {rows_, columns_}, {columns_, rows_}};
        to = pick(shapes);
        if (to.elements() != n) return false;
        line.shape = to;
        break;
      }
      case 2:
        to = s;
        result = Handle();
        result.is_detached = true;
        break;
      default:
        if (s.rank() == 0) return false;
        to = {s.dim(0), s.elements() / s.dim(0)};
        break;
    }
    line.out = {add_value(to, memory(a), add_handle(result))};
    return true;
  }

  bool draw_update(Line& line) {
    const int target = draw_value();
    if (is_feed(target) || (inside_ && memory(target) < first_inside_)) return false;
    const bool concrete = concrete_[at(target)];
    line.in = {target};
    if (concrete || chance(2)) {
      for (int tries = 0; tries < 20 && line.in.size() < 2; ++tries) {
        const int v = concrete ? draw_symbolic() : draw_value();
        if (v >= 0 && shape(v) == shape(target)) line.in.push_back(v);
      }
      if (line.in.size() < 2 && concrete) return false;
    }
    Handle& h = handle(target);
    const bool assigns = line.variant % 2 == 0;
    if (line.in.size() == 2) {
      const Handle& value = handle(line.in[1]);
      const bool is_captured_constant = is_state(target) && !is_registered(target);
      line.flag = is_captured_constant || chance(6);
      if (!is_state(target) && value.may_have_history &&
          (h.is_captured || (h.is_detached && has_detached_alias(target))))
        line.flag = true;
    }
    ++version(target);
    updated_ = memory(target);
    if (!is_state(target)) {
      if (assigns) {
        const bool kept = h.may_have_history;
        const Handle old = h;
        h = Handle();
        h.is_detached = old.is_detached;
        h.is_captured = old.is_captured;
        // Assigning a number or a constant is recorded too if the target has a history.
        h.has_history = old.has_history;
        h.may_have_history = kept;
      }
      if (line.in.size() == 2 && !line.flag) inherit(h, handle(line.in[1]));
      if (h.may_have_history) written_[at(memory(target))] = true;
      h.tied = version(target);
    }
    line.out = {add_value(shape(target), memory(target), handle_of_[at(target)])};
    return true;
  }

  // Whether v is a parameter or state: writing to them records no history.
  bool is_registered(int v) const {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i)
      if (memory(static_cast<int>(i)) == memory(v))
        return program_.inputs[i].kind == StatefulInput::parameter ||
               program_.inputs[i].kind == StatefulInput::state;
    return false;
  }

  // Whether another detached handle shares the target's memory. Eager cannot tell a view of a
  // detached tensor, which misses its updates, from a tensor that was itself detached.
  bool has_detached_alias(int target) {
    return std::any_of(pool_.begin(), pool_.end(), [&](int v) {
      return memory(v) == memory(target) && &handle(v) != &handle(target) && handle(v).is_detached;
    });
  }

  std::vector<int> parameters_below(int scope) const {
    std::vector<int> found;
    for (const int p : parameters_) {
      const std::string& name = program_.inputs[at(p)].name;
      if (scope == 2 || name[0] == (scope == 0 ? 'a' : 'b')) found.push_back(p);
    }
    return found;
  }

  // Draws `in`: the loss, a parameter added to it in case it depends on nothing (or -1), the
  // targets.
  bool draw_gradient(Line& line) {
    const int a = draw_symbolic();
    if (a < 0) return false;
    line.in = {a, handle(a).has_history && !chance(4) ? -1 : pick(parameters_)};
    line.flag = chance(2);
    std::vector<int> targets;
    const int count = draw(1, 3);
    for (int tries = 0; tries < 30 && static_cast<int>(targets.size()) < count; ++tries) {
      const int v = chance(2) ? pick(parameters_) : draw_value();
      if (!handle(v).has_history || is_stale(v) || concrete_[at(v)]) continue;
      // A gradient rule that reads its own result reads the recomputed one, so that a second
      // derivative by this result would differ.
      if (handle(v).is_recomputed && handle(a).is_of_higher_order) continue;
      targets.push_back(v);
    }
    if (targets.empty()) return false;
    for (const int t : targets) {
      line.in.push_back(t);
      Handle result;
      result.may_have_history = result.is_of_higher_order = line.flag;
      line.out.push_back(add_value(shape(t), add_memory(false, false), add_handle(result)));
    }
    return true;
  }

  // Draws `in` as draw_gradient() does, without targets. begin is the scope, end the optimizer.
  bool draw_step(Line& line) {
    const int a = draw_symbolic();
    if (a < 0) return false;
    line.begin = draw(0, 2);
    line.end = draw(0, 5);
    const std::vector<int> below = parameters_below(static_cast<int>(line.begin));
    bool depends = handle(a).has_history;
    depends = depends && std::any_of(below.begin(), below.end(),
                                     [&](int p) { return handle(a).parameters.contains(p); });
    line.in = {a, depends && !chance(4) ? -1 : pick(below)};
    for (const int p : below) ++version(p);
    // The step's result is only for fetching.
    line.out = {add_value({}, add_memory(false, false), add_handle({}))};
    pool_.pop_back();
    return true;
  }

  bool draw_recomputed(Line& line) {
    const int a = draw_symbolic();
    if (a < 0) return false;
    const std::size_t pool = pool_.size();
    first_inside_ = static_cast<int>(versions_.size());
    inside_ = true;
    Handle argument = handle(a);
    argument.tied = version(a);
    if (is_stale(a)) argument.tied = -1;
    const int parameter = add_value(shape(a), memory(a), add_handle(argument));
    std::set<int> read;
    Handle result;
    result.may_have_history = handle(a).may_have_history;
    const int length = draw(1, 4);
    for (int i = 0; i < length; ++i) {
      Line inner;
      for (int tries = 0; tries < 20; ++tries) {
        inner = Line();
        inner.kind = draw_kind();
        if (i + 1 == length) inner.kind = chance(2) ? Line::unary : Line::number;
        if (!draw_line(inner)) continue;
        line.body.push_back(inner);
        break;
      }
    }
    inside_ = false;
    if (line.body.empty() ||
        (line.body.back().kind != Line::unary && line.body.back().kind != Line::number)) {
      pool_.resize(pool);
      return false;
    }
    drop_unneeded(line.body);
    for (const Line& inner : line.body)
      for (const int v : inner.in) {
        if (v < parameter) read.insert(v);
        result.may_have_history |= handle(v).may_have_history;
      }
    const int last = line.body.back().out[0];
    const Shape made = shape(last);
    inherit(result, handle(last));
    result.is_recomputed = true;
    for (const int v : read) handle(v).is_captured = true;
    pool_.resize(pool);
    line.in = {a};
    line.in.insert(line.in.end(), read.begin(), read.end());
    const int out = add_value(made, add_memory(false, false), add_handle(result));
    line.out = {out, parameter};
    return true;
  }

  // Drops lines that the last one does not need: eager's recompute counts all that is read as
  // needed.
  void drop_unneeded(std::vector<Line>& body) const {
    std::set<int> memories, values;
    std::vector<Line> needed;
    for (std::size_t i = body.size(); i-- > 0;) {
      const Line& line = body[i];
      const bool updates = line.kind == Line::update && memories.contains(memory(line.in[0]));
      if (i + 1 < body.size() && !updates && !values.contains(line.out[0])) continue;
      for (const int v : line.in) {
        values.insert(v);
        memories.insert(memory(v));
      }
      needed.insert(needed.begin(), line);
    }
    body = std::move(needed);
  }

  void draw_fetches(int run) {
    std::vector<int> made, fetches;
    for (const int v : pool_)
      if (!concrete_[at(v)]) made.push_back(v);
    for (const Line& line : program_.lines)
      if (line.kind == Line::minimize || line.kind == Line::apply) made.push_back(line.out[0]);
    const bool everything = run == 0 ? chance(4) : chance(6);
    const int count = draw(1, 6);
    for (int i = 0; i < count; ++i) {
      const int last = static_cast<int>(made.size()) - 1;
      fetches.push_back(made[at(chance(2) ? draw(std::max(0, last - 6), last) : draw(0, last))]);
    }
    if (everything)
      for (const Line& line : program_.lines) fetches.push_back(line.out[0]);
    program_.runs.push_back(std::move(fetches));
  }

  std::mt19937_64 random_;
  StatefulProgram program_;
  int rows_ = 1, columns_ = 1;
  std::vector<Handle> handles_;
  std::vector<int> handle_of_;   // by value
  std::vector<bool> concrete_;   // by value: a graph captures it
  std::vector<int> versions_;    // by memory
  std::vector<bool> written_;    // by memory: an update of it has a history
  std::vector<int> pool_;        // values that lines may read
  std::vector<int> parameters_;  // values
  int updated_ = -1;             // the memory that was updated last
  bool inside_ = false;          // whether in a recomputed region
  int first_inside_ = 0;         // its first memory
};

}  // namespace

StatefulProgram draw_stateful_program(std::uint64_t seed) { return Generator(seed).draw_program(); }

}  // namespace ebb::tests
