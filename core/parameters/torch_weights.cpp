#include "ebb/core/parameters/torch_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

namespace {

using detail::in_double_quotes;
using Entry = safetensors::File::Entry;

// Source of a parameter's values in the file.
struct Source {
  std::vector<std::string> names;  // in the file; values are summed
  bool is_transposed = false;
  bool may_lack = false;  // a bias: zero if the file has none
  int third = -1;         // third to take along the first axis; -1: all of it
  // A GRU's bias, of three gates: n of the input and n of the recurrence stay apart.
  bool is_gru_bias = false;

  // Whether it is one tensor of the file, unchanged.
  bool is_plain() const noexcept { return names.size() == 1 && !is_transposed && third < 0; }
};

std::string below(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + '.' + name;
}

// The name within a scope; nothing if it is not in that scope.
std::optional<std::string> name_in(const std::string& scope, const std::string& name) {
  if (scope.empty()) return name;
  if (!name.starts_with(scope + '.')) return {};
  return name.substr(scope.size() + 1);
}

// Source of a parameter of the layer; nothing if the layer has no parameter of that name.
std::optional<Source> source_of(const TorchRule& rule, const std::string& name) {
  const auto in_torch = [&](const std::string& of) { return below(rule.torch, of); };
  switch (rule.layer) {
    case TorchLayer::linear:
      if (name == "weight") return Source{{in_torch(name)}, true};
      if (name == "bias") return Source{{in_torch(name)}, false, true};
      return {};
    case TorchLayer::lstm:
    case TorchLayer::gru: {
      const std::size_t dot = name.find('.');
      if (dot == name.npos) return {};
      std::string layer = "_l" + name.substr(0, dot), part = name.substr(dot + 1);
      if (const auto backward = name_in("reverse", part)) {
        layer += "_reverse";
        part = *backward;
      }
      if (part == "input") return Source{{in_torch("weight_ih" + layer)}, true};
      if (part == "recurrent") return Source{{in_torch("weight_hh" + layer)}, true};
      if (part == "bias")
        return Source{{in_torch("bias_ih" + layer), in_torch("bias_hh" + layer)},
                      false,
                      true,
                      -1,
                      rule.layer == TorchLayer::gru};
      return {};
    }
    case TorchLayer::norm:
      if (name == "scale") return Source{{in_torch("weight")}};
      if (name == "shift") return Source{{in_torch("bias")}, false, true};
      if (name == "running_mean") return Source{{in_torch("running_mean")}};
      if (name == "running_variance") return Source{{in_torch("running_var")}};
      return {};
    case TorchLayer::attention: {
      if (name == "output.weight") return Source{{in_torch("out_proj.weight")}, true};
      if (name == "output.bias") return Source{{in_torch("out_proj.bias")}, false, true};
      int third = 0;
      for (const std::string of : {"query", "key", "value"}) {
        if (name == of + ".weight") return Source{{in_torch("in_proj_weight")}, true, false, third};
        if (name == of + ".bias") return Source{{in_torch("in_proj_bias")}, false, true, third};
        ++third;
      }
      return {};
    }
    case TorchLayer::unchanged:
      break;
  }
  return Source{{in_torch(name)}};
}

// Whether a file's [3 hidden] can be part of a [4 hidden] here.
bool is_gru_bias(const Shape& shape, const Shape& made) {
  return shape.rank() == 1 && made.rank() == 1 && made.dim(0) % 4 == 0 &&
         shape.dim(0) == made.dim(0) / 4 * 3;
}

// Shape of a tensor after conversion; nothing if it cannot be converted.
std::optional<Shape> shape_here(Shape shape, const Source& source) {
  if (source.third >= 0) {
    if (shape.rank() == 0 || shape.dim(0) % 3 != 0) return {};
    shape.set(0, shape.dim(0) / 3);
  }
  if (!source.is_transposed) return shape;
  if (shape.rank() != 2) return {};
  return Shape{shape.dim(1), shape.dim(0)};
}

class Reader {
 public:
  Reader(const Parameters& parameters, const std::string& name, const std::vector<TorchRule>& rules)
      : name_(name), file_(name), rules_(rules) {
    for (const auto* list : {&parameters.entries(), &parameters.states()})
      for (const Parameters::Entry& entry : *list)
        find(entry.name.substr(parameters.prefix().size()), entry.tensor.impl()->spec);
    find_unread();
    if (problems_.empty()) return;
    std::string text = name_ + " does not fit: ";
    constexpr std::size_t most = 12;
    for (std::size_t i = 0; i < std::min(problems_.size(), most); ++i)
      text += (i ? "; " : "") + problems_[i];
    if (problems_.size() > most)
      text += "; and " + std::to_string(problems_.size() - most) + " more";
    detail::refuse<FileError>("load_torch", text + ". The file has " + contents());
  }

  std::map<std::string, Tensor> read() const {
    std::map<std::string, Tensor> values;
    for (const Found& found : found_) {
      Tensor tensor = detail::allocate(found.spec, Device::cpu(), detail::tape_mode().category,
                                       detail::tag("load_torch", detail::entry()));
      tensor.impl()->storage->write(0, tensor.bytes(), [&](void* to) { read(found, to); });
      values.emplace(found.name, std::move(tensor));
    }
    return values;
  }

 private:
  // A parameter and the tensors that it is read from; with none it becomes zero.
  struct Found {
    std::string name;
    Spec spec;
    Source source;
    std::vector<const Entry*> from = {};
  };

  void find(const std::string& name, const Spec& spec) {
    const TorchRule* rule = nullptr;
    for (const TorchRule& candidate : rules_)
      if (name_in(candidate.ebb, name) && (!rule || candidate.ebb.size() > rule->ebb.size()))
        rule = &candidate;
    const std::string here = in_double_quotes(name) + ", which is " + spec.to_string() + " here,";
    if (!rule) return problems_.push_back(here + " has no rule");
    const std::optional<Source> source = source_of(*rule, *name_in(rule->ebb, name));
    if (!source) return problems_.push_back(here + " is no parameter of such a layer");
    Found found{name, spec, *source};
    for (const std::string& wanted : source->names) {
      const Entry* entry = file_.find(wanted);
      if (!entry && source->may_lack) continue;
      if (!entry) {
        problems_.push_back(here + " has no " + in_double_quotes(wanted) + " to be read from");
        return;
      }
      read_.insert(wanted);
      const bool fits = source->is_gru_bias ? is_gru_bias(entry->spec.shape, spec.shape)
                                            : shape_here(entry->spec.shape, *source) == spec.shape;
      const bool converts = is_floating(entry->spec.dtype) && is_floating(spec.dtype);
      const bool copies = entry->spec.dtype == spec.dtype && source->is_plain();
      if (!fits || !(converts || copies)) {
        problems_.push_back(here + " would be read from " +
                            (source->third >= 0 ? "a third of " : "") + in_double_quotes(wanted) +
                            ", " + entry->spec.to_string() +
                            (source->is_transposed ? " before it is transposed" : ""));
        return;
      }
      found.from.push_back(entry);
    }
    found_.push_back(std::move(found));
  }

  // Reports tensors in modules of the rules that nobody reads.
  void find_unread() {
    for (const Entry& entry : file_.entries()) {
      if (read_.contains(entry.name) || entry.name.ends_with("num_batches_tracked")) continue;
      if (std::any_of(rules_.begin(), rules_.end(), [&](const TorchRule& rule) {
            return name_in(rule.torch, entry.name).has_value();
          }))
        problems_.push_back(in_double_quotes(entry.name) + ", " + entry.spec.to_string() +
                            " in the file, has no place here");
    }
  }

  std::string contents() const {
    std::vector<std::string> names;
    for (const Entry& entry : file_.entries())
      names.push_back(in_double_quotes(entry.name) + " " + entry.spec.to_string());
    return names.empty() ? "nothing" : detail::nearest(problems_.front(), std::move(names));
  }

  void read(const Found& found, void* to) const {
    if (found.from.empty()) {
      std::memset(to, 0, found.spec.bytes());
      return;
    }
    const Entry& first = *found.from.front();
    const bool as_it_is =
        found.from.size() == 1 && first.spec == found.spec && !found.source.is_transposed;
    if (as_it_is) return file_.read(first.name, to);
    // Sum in f64, so that it is rounded once. Start from -0: -0 + v is v, even for v = -0.
    std::vector<double> sum(static_cast<std::size_t>(found.spec.shape.elements()), -0.);
    std::vector<std::byte> bytes;
    for (const Entry* entry : found.from) {
      bytes.resize(entry->spec.bytes());
      file_.read(entry->name, bytes.data());
      with_type_of(entry->spec.dtype, [&]<class T>(T) {
        const auto* const values =
            reinterpret_cast<const T*>(bytes.data()) +
            sum.size() * static_cast<std::size_t>(std::max(found.source.third, 0));
        if (found.source.is_gru_bias) {
          const std::size_t hidden = sum.size() / 4;
          const bool of_input =
              entry->name.substr(entry->name.rfind('.') + 1).starts_with("bias_ih");
          const std::size_t last = of_input ? 2 * hidden : 3 * hidden;
          for (std::size_t i = 0; i < 2 * hidden; ++i) sum[i] += convert<double>(values[i]);
          for (std::size_t i = 0; i < hidden; ++i)
            sum[last + i] = convert<double>(values[2 * hidden + i]);
          return;
        }
        const auto columns =
            static_cast<std::size_t>(found.source.is_transposed ? entry->spec.shape.dim(1) : 1);
        const std::size_t rows = columns == 0 ? 0 : sum.size() / columns;
        for (std::size_t i = 0; i < rows; ++i)
          for (std::size_t j = 0; j < columns; ++j)
            sum[j * rows + i] += convert<double>(values[i * columns + j]);
      });
    }
    with_type_of(found.spec.dtype, [&]<class T>(T) {
      std::transform(sum.begin(), sum.end(), static_cast<T*>(to),
                     [](double value) { return convert<T>(value); });
    });
  }

  const std::string& name_;
  const safetensors::File file_;
  const std::vector<TorchRule>& rules_;
  std::vector<Found> found_;
  std::set<std::string> read_;
  std::vector<std::string> problems_;
};

}  // namespace

std::map<std::string, Tensor> torch_weights(const Parameters& parameters, const std::string& file,
                                            const std::vector<TorchRule>& rules, CallSite site) {
  const detail::CallSiteScope at(site);
  detail::require_any(parameters, "load_torch");
  return Reader(parameters, file, rules).read();
}

void load_torch(const Parameters& parameters, const std::string& file,
                const std::vector<TorchRule>& rules, CallSite site) {
  const detail::CallSiteScope at(site);
  if (parameters.is_symbolic())
    detail::refuse("load_torch",
                   "the parameters of a graph have no values: assign those of torch_weights() in a "
                   "session");
  for (const auto& [name, value] : torch_weights(parameters, file, rules)) {
    const Tensor here = parameters[name];
    const HostView values = value.impl()->storage->view(value.impl()->offset, value.bytes());
    detail::write_state(*here.impl(), values.data());
  }
}

}  // namespace ebb
