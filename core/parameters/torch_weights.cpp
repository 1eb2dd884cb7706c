#include "ebb/core/parameters/torch_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"
#include "ebb/core/device/host_bytes.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

namespace {

using Entry = safetensors::File::Entry;
using Texts = std::vector<std::string>;

// Names are paths here, each with a dot before it: ".encoder.lstm". The whole is an empty path.
std::string path_of(const std::string& name) { return name.empty() ? name : '.' + name; }
std::string name_of(const std::string& path) { return path.empty() ? path : path.substr(1); }

// Matches the first names of a path. Appends to `stars` what each '*' of the pattern stands for.
// Returns the rest of the path; nothing if it does not match.
std::optional<std::string> rest_of(std::string_view path, std::string_view pattern, Texts& stars) {
  if (pattern.empty())
    return path.empty() || path[0] == '.' ? std::optional(std::string(path)) : std::nullopt;
  if (pattern[0] != '*') {
    if (path.empty() || path[0] != pattern[0]) return {};
    return rest_of(path.substr(1), pattern.substr(1), stars);
  }
  for (std::size_t size = 1; size <= path.size() && path[size - 1] != '.'; ++size) {
    stars.emplace_back(path.substr(0, size));
    if (auto rest = rest_of(path.substr(size), pattern.substr(1), stars)) return rest;
    stars.pop_back();
  }
  return {};
}

std::string fill_in(std::string_view pattern, const Texts& stars) {
  std::string text;
  auto star = stars.begin();
  for (const char c : pattern)
    if (c == '*')
      text += *star++;
    else
      text += c;
  return text;
}

// A parameter's name at the end of a path, the tensor of PyTorch's that it is, and one that is
// added to it.
struct Renaming {
  const char* here;
  const char* torch;
  bool is_transposed = false;
  const char* added = nullptr;
};
constexpr Renaming kRenamings[] = {
    {".scale", ".weight"},
    {".shift", ".bias"},
    {".running_variance", ".running_var"},
    {".*.input", ".weight_ih_l*", true},
    {".*.recurrent", ".weight_hh_l*", true},
    {".*.bias", ".bias_ih_l*", false, ".bias_hh_l*"},
    {".*.recurrent_bias", ".bias_hh_l*"},
    {".*.reverse.input", ".weight_ih_l*_reverse", true},
    {".*.reverse.recurrent", ".weight_hh_l*_reverse", true},
    {".*.reverse.bias", ".bias_ih_l*_reverse", false, ".bias_hh_l*_reverse"},
    {".*.reverse.recurrent_bias", ".bias_hh_l*_reverse"},
    {".qkv.weight", ".in_proj_weight", true},
    {".qkv.bias", ".in_proj_bias"},
    {".output.weight", ".out_proj.weight", true},
    {".output.bias", ".out_proj.bias"},
};
constexpr std::array kThirds = {"query", "key", "value"};  // of "qkv"

// Equal parts of the columns of a tensor, the elements along its last axis.
struct Part {
  int first = 0, of = 1;
};

// Columns of a parameter, read from a tensor of the file: `parts` parts from `from` on.
struct Piece {
  const Entry* entry;
  bool is_transposed = false;
  Part from = {}, to = {};
  int parts = 1;
  bool is_by_shape = false;  // transposed if only that fits

  // Whether the entry can be converted to its part of a parameter of this spec.
  bool fits(const Spec& spec, bool transposed) const {
    Shape shape = entry->spec.shape;
    if (transposed) {
      if (shape.rank() != 2) return false;
      shape = {shape.dim(1), shape.dim(0)};
    }
    if (from.of != to.of) {
      if (shape.rank() == 0 || shape.dim(-1) % from.of != 0) return false;
      shape.set(-1, shape.dim(-1) / from.of * to.of);
    }
    return shape == spec.shape && is_floating(entry->spec.dtype) && is_floating(spec.dtype);
  }
  // Whether its values are the parameter's, bit for bit.
  bool is_whole(const Spec& spec) const {
    return entry->spec == spec && !is_transposed && from.of == 1 && to.of == 1;
  }
};
using Pieces = std::vector<Piece>;  // values of pieces at one place are added up

// A parameter, and what it is read from.
struct Found {
  std::string name;
  Tensor parameter;
  std::size_t offset;  // of its values in those of all
  Spec spec = parameter.impl()->spec;
  std::vector<Pieces> sources = {};  // equal ones, if it is tied
  std::string lacking = {};          // names that the rules give, and the file lacks
  bool fits = true;
  std::string from = {};  // for people

  std::string here() const { return name + ' ' + spec.to_string(); }
  void lacks(const std::string& tensor) {
    lacking += (lacking.empty() ? "has no " : " or ") + detail::in_double_quotes(tensor);
  }
};

class Reader {
 public:
  Reader(const Parameters& parameters, const std::string& name, const std::vector<TorchRule>& rules)
      : parameters_(parameters), file_(name), rules_(rules) {
    for (const TorchRule& rule : rules)
      if (rule.layer != TorchLayer::ignored &&
          std::ranges::count(rule.torch, '*') != std::ranges::count(rule.ebb, '*'))
        detail::refuse("load_torch", "the rule from \"" + rule.torch + "\" to \"" + rule.ebb +
                                         "\" has another number of '*' on either side");
    for (const auto* list : {&parameters.entries(), &parameters.states()})
      for (const Parameters::Entry& entry : *list) {
        found_.push_back(find({entry.local(), entry.tensor, bytes_}));
        bytes_ += found_.back().spec.bytes();
      }
    for (Found& found : found_)
      if (found.sources.empty()) try_zeros(found);
  }

  // Each parameter with what it is read from, then what is left of the file.
  std::string mapping() const {
    std::size_t width = 0;
    for (const Found& found : found_) width = std::max(width, found.here().size());
    std::string text;
    for (const Found& found : found_) {
      std::string here = found.here();
      here.resize(width, ' ');
      text += here + ' ' + found.from + '\n';
    }
    for (const Entry& entry : file_.entries())
      if (!read_.contains(entry.name))
        text += "left over: " + entry.name + ' ' + entry.spec.to_string() +
                (has_no_place(entry) ? ", though a rule names it"
                 : is_ignored(entry) ? ", ignored"
                                     : "") +
                '\n';
    return text;
  }

  void require_fit(const std::string& file) const {
    Texts problems;
    for (const Found& found : found_)
      if (!found.fits)
        problems.push_back('"' + found.name + "\" " + found.spec.to_string() + ' ' + found.from);
    for (const Entry& entry : file_.entries())
      if (has_no_place(entry))
        problems.push_back('"' + entry.name + "\" " + entry.spec.to_string() +
                           " in the file has no place here");
    if (problems.empty()) return;
    std::string text = file + " does not fit: ";
    constexpr std::size_t most = 12;
    for (std::size_t i = 0; i < std::min(problems.size(), most); ++i)
      text += (i ? "; " : "") + problems[i];
    if (problems.size() > most) text += "; and " + std::to_string(problems.size() - most) + " more";
    Texts names;
    for (const Entry& entry : file_.entries())
      names.push_back('"' + entry.name + "\" " + entry.spec.to_string());
    detail::refuse<FileError>(
        "load_torch", text + ". The file has " +
                          (names.empty() ? "nothing" : detail::nearest(problems[0], names)));
  }

  // Reads everything before anything is written, so that a file that fails half-way changes
  // nothing.
  void read(bool is_simulated, const detail::WriteValue& write) const {
    HostBytes bytes(is_simulated ? 0 : bytes_, "load_torch",
                    "a copy of a file's values, before any is written");
    if (!is_simulated)
      for (const Found& found : found_) read(found, bytes.data() + found.offset);
    for (const Found& found : found_)
      write(found.parameter, is_simulated ? nullptr : bytes.data() + found.offset);
  }

 private:
  // Tensors of the file that the rules give for a path here, one for each rule of the same rank.
  std::vector<Pieces> by_rules(const std::string& path, Found& found) const {
    struct Match {
      const TorchRule* rule;
      std::string module, rest;  // in the file
    };
    std::map<std::pair<std::ptrdiff_t, std::ptrdiff_t>, std::vector<Match>> by_rank = {{}};
    for (const TorchRule& rule : rules_) {
      Texts stars;
      const std::string scope = path_of(rule.ebb);
      const auto rest = rest_of(path, scope, stars);
      if (!rest || rule.layer == TorchLayer::ignored) continue;
      by_rank[{std::ranges::count(scope, '.'), -std::ranges::count(scope, '*')}].push_back(
          {&rule, fill_in(path_of(rule.torch), stars), *rest});
    }
    std::vector<Pieces> sources;
    for (const auto& [rule, module, rest] : by_rank.rbegin()->second)
      if (Pieces pieces = by_rule(*rule, module, rest, found); !pieces.empty())
        sources.push_back(std::move(pieces));
    return sources;
  }

  Pieces by_rule(const TorchRule& rule, const std::string& module, const std::string& rest,
                 Found& found) const {
    if (const Entry* entry = file_.find(name_of(module + rest))) {
      const bool is_matrix =
          entry->spec.shape.rank() == 2 && (rest.empty() || rest.ends_with(".weight"));
      return {{.entry = entry,
               .is_transposed = is_matrix && rule.layer == TorchLayer::linear,
               .is_by_shape = is_matrix && rule.layer == TorchLayer::by_shape}};
    }
    found.lacks(name_of(module + rest));
    for (const Renaming& renaming : kRenamings)
      for (std::size_t at = rest.find('.'); at != rest.npos; at = rest.find('.', at + 1)) {
        Texts stars;
        if (rest_of(std::string_view(rest).substr(at), renaming.here, stars) != "") continue;
        const auto named = [&](const char* torch) {
          return name_of(module + rest.substr(0, at) + fill_in(torch, stars));
        };
        const Entry* const entry = file_.find(named(renaming.torch));
        if (!entry && !renaming.added) found.lacks(named(renaming.torch));
        if (!entry) continue;
        const Entry* const added = renaming.added ? file_.find(named(renaming.added)) : nullptr;
        if (!added) return {{entry, renaming.is_transposed}};
        if (entry->spec.shape == found.spec.shape) return {{entry}, {added}};
        // A GRU's: its gates r, z and n are r, z, n of the input and n of the recurrence here.
        return {{entry, false, {0, 3}, {0, 4}, 3},
                {added, false, {0, 3}, {0, 4}, 2},
                {added, false, {2, 3}, {3, 4}}};
      }
    return {};
  }

  Found find(Found found) {
    const std::string path = path_of(found.name);
    found.sources = by_rules(path, found);
    if (found.name.ends_with(".bias") &&
        parameters_.contains(found.name.substr(0, found.name.size() - 4) + "recurrent_bias"))
      for (Pieces& pieces : found.sources) pieces.resize(1);  // each of the two is one there
    const std::size_t leaf = path.rfind('.'), dot = path.rfind('.', leaf - 1);
    if (found.sources.empty() && leaf != 0) {
      const std::string layer = path.substr(dot + 1, leaf - dot - 1);
      const auto beside = [&](const std::string& other) {
        return by_rules(path.substr(0, dot + 1) + other + path.substr(leaf), found);
      };
      Pieces whole;
      for (int i = 0; i < 3; ++i) {
        const char* const third = kThirds[static_cast<std::size_t>(i)];
        if (layer == third)
          for (Pieces& pieces : found.sources = beside("qkv")) pieces[0].from = {i, 3};
        if (layer == "qkv")
          for (Pieces& pieces : beside(third)) {
            pieces[0].to = {i, 3};
            whole.push_back(pieces[0]);
          }
      }
      if (whole.size() == 3) found.sources = {whole};
    }
    bool is_ambiguous = false;
    for (Pieces& pieces : found.sources)
      for (Piece& piece : pieces) {
        read_.insert(piece.entry->name);
        const bool fits = piece.fits(found.spec, piece.is_transposed) ||
                          (pieces.size() == 1 && piece.is_whole(found.spec));
        const bool fits_transposed = piece.is_by_shape && piece.fits(found.spec, true);
        piece.is_transposed |= !fits && fits_transposed;
        is_ambiguous |= fits && fits_transposed;
        found.fits &= fits || fits_transposed;
      }
    found.from = (found.fits ? "is " : "cannot be ") + describe(found.sources);
    if (is_ambiguous)
      found.from += " or that transposed, so its rule must say TorchLayer::linear or unchanged";
    found.fits &= !is_ambiguous && !found.sources.empty();
    if (found.sources.empty()) found.from = found.lacking.empty() ? "has no rule" : found.lacking;
    return found;
  }

  static std::string describe(const std::vector<Pieces>& sources) {
    std::string text;
    for (const Pieces& pieces : sources) {
      text += text.empty() ? "" : ", tied to ";
      const Entry* last = nullptr;
      for (const Piece& piece : pieces) {
        if (piece.entry == last) continue;
        if (last) text += piece.to.of == 3 ? " beside " : " + ";
        if (piece.from.of == 3 && piece.to.of == 1) text += "a third of ";
        last = piece.entry;
        text += '"' + last->name + "\" " + last->spec.to_string();
        if (piece.is_transposed) text += " transposed";
      }
    }
    return text;
  }

  // A bias that the file lacks is zero, if the file has another parameter of its layer.
  void try_zeros(Found& found) const {
    const std::size_t leaf = found.name.rfind('.') + 1;
    if (found.lacking.empty() || !(found.name.ends_with("bias") || found.name.ends_with("shift")))
      return;
    found.fits = std::ranges::any_of(found_, [&](const Found& other) {
      return !other.sources.empty() && other.name.rfind('.') + 1 == leaf &&
             other.name.starts_with(found.name.substr(0, leaf));
    });
    if (found.fits) found.from += " and is zero";
  }

  bool is_named(const Entry& entry, bool ignored) const {
    return std::ranges::any_of(rules_, [&](const TorchRule& rule) {
      Texts stars;
      return (rule.layer == TorchLayer::ignored) == ignored &&
             rest_of(path_of(entry.name), path_of(rule.torch), stars);
    });
  }
  bool is_ignored(const Entry& entry) const {
    return entry.name.ends_with("num_batches_tracked") || is_named(entry, true);
  }
  // Whether a rule names the tensor's module, and nobody reads the tensor.
  bool has_no_place(const Entry& entry) const {
    return !read_.contains(entry.name) && !is_ignored(entry) && is_named(entry, false);
  }

  void read(const Found& found, void* to) const {
    if (found.sources.empty()) std::memset(to, 0, found.spec.bytes());
    for (const Pieces& pieces : found.sources) {
      if (&pieces == &found.sources.front()) {
        read(pieces, found.spec, to);
        continue;
      }
      std::vector<std::byte> other(found.spec.bytes());
      read(pieces, found.spec, other.data());
      if (std::memcmp(other.data(), to, other.size()) != 0)
        detail::refuse<FileError>("load_torch",
                                  '"' + found.name + "\" " + found.from + ", whose values differ");
    }
  }

  void read(const Pieces& pieces, const Spec& spec, void* to) const {
    if (pieces[0].is_whole(spec) && pieces.size() == 1)
      return file_.read(pieces[0].entry->name, to);
    // Sum in f64, so that it is rounded once. Start from -0: -0 + v is v, even for v = -0.
    std::vector<double> sum(static_cast<std::size_t>(spec.shape.elements()), -0.);
    for (const Piece& piece : pieces) add(piece, sum);
    with_type_of(spec.dtype, [&]<class T>(T) {
      std::ranges::transform(sum, static_cast<T*>(to), [](double v) { return convert<T>(v); });
    });
  }

  void add(const Piece& piece, std::vector<double>& sum) const {
    const Spec& spec = piece.entry->spec;
    std::vector<std::byte> bytes(spec.bytes());
    if (bytes.empty()) return;
    file_.read(piece.entry->name, bytes.data());
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const std::size_t elements = size(spec.shape.elements()),
                      columns = piece.is_transposed     ? size(spec.shape.dim(0))
                                : spec.shape.rank() > 0 ? size(spec.shape.dim(-1))
                                                        : 1,
                      rows = elements / columns, part = columns / size(piece.from.of);
    with_type_of(spec.dtype, [&]<class T>(T) {
      const T* const values = reinterpret_cast<const T*>(bytes.data());
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < part * size(piece.parts); ++i) {
          const std::size_t column = part * size(piece.from.first) + i;
          sum[(row * size(piece.to.of) + size(piece.to.first)) * part + i] += convert<double>(
              values[piece.is_transposed ? column * rows + row : row * columns + column]);
        }
    });
  }

  const Parameters& parameters_;
  const safetensors::File file_;
  const std::vector<TorchRule>& rules_;
  std::vector<Found> found_;
  std::set<std::string> read_;
  std::size_t bytes_ = 0;  // of all parameters' values
};

}  // namespace

std::string torch_mapping(const Parameters& parameters, const std::string& file,
                          const std::vector<TorchRule>& rules, CallSite site) {
  const detail::CallSiteScope at(site);
  return Reader(parameters, file, rules).mapping();
}

void detail::read_torch(const Parameters& parameters, const std::string& file,
                        const std::vector<TorchRule>& rules, bool is_simulated,
                        const WriteValue& write) {
  require_any(parameters, "load_torch");
  const Reader reader(parameters, file, rules);
  reader.require_fit(file);
  reader.read(is_simulated, write);
}

void load_torch(const Parameters& parameters, const std::string& file,
                const std::vector<TorchRule>& rules, CallSite site) {
  const detail::CallSiteScope at(site);
  detail::refuse_while_tracing("load_torch", site);
  if (parameters.is_symbolic())
    detail::refuse("load_torch",
                   "the parameters of a graph have no values: session.load_torch() takes them");
  detail::read_torch(parameters, file, rules, parameters.device().is_simulated(),
                     [](const Tensor& parameter, const std::byte* values) {
                       detail::write_state(*detail::stored(parameter).impl(),
                                           detail::own_values(parameter, values));
                     });
}

}  // namespace ebb
