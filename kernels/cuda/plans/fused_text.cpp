#include "ebb/kernels/cuda/plans/fused_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

#include "ebb/allocator/error.h"
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/core/kernels/compare.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/integers.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb::cuda {
namespace {

struct Applied {
  Kernel run;
  const char* functor;
  std::size_t parameters;  // numbers, which are the attributes
  bool takes_number;       // the attributes are a NumberOperand
};
template <class F>
constexpr Applied applied(Kernel run, const char* functor, bool takes_number = false) {
  return {run, functor, std::is_empty_v<F> ? 0 : sizeof(F) / sizeof(double), takes_number};
}

constexpr Applied kApplied[] = {
#define EBB_UNARY(name, F) applied<functors::F>(map<functors::F>, #F),
#define EBB_BINARY(name, F) applied<functors::F>(zip<functors::F>, #F, true),
#define EBB_PAIR(name, F) applied<functors::F>(pair<functors::F>, #F),
#include "ebb/core/kernels/functors/families.inc"
};

// The kernels of operators that take integers as well.
struct OfNumbers {
  Kernel run, floating;
  IntegerOperation operation;
};
template <class F>
constexpr OfNumbers of_numbers() {
  constexpr IntegerOperation operation = ebb::detail::AllIntegerFunctors::operation_of<F>();
  if constexpr (operation < IntegerOperation::negate)
    return {zip_number<F>, zip<F>, operation};
  else
    return {map_number<F>, map<F>, operation};
}
template <class... Functors>
constexpr auto all_of_numbers(ebb::detail::IntegerFunctors<Functors...>) {
  return std::array{of_numbers<Functors>()...};
}

constexpr const char* kTypes[] = {"float",        "double",       "Float16",      "BFloat16",
                                  "std::int32_t", "std::int64_t", "std::uint8_t", "std::uint8_t"};
// bool is stored as u8.
const char* type_of(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }
const char* converted_type(DType dtype) {
  return dtype == DType::boolean ? "bool" : type_of(dtype);
}

// In the order of Comparison.
constexpr const char* kComparisons[] = {
    "x == y",    "x != y",       "x < y",        "x <= y", "x > y",
    "x >= y",    "(x & y) != 0", "(x | y) != 0", "x != x", "x == x && x - x != 0",
    "x - x == 0"};

constexpr const char* kBegin =
    "#include \"ebb/kernels/cuda/fold_block.h\"\n"
    "#include \"ebb/kernels/cuda/fused_kernel.h\""
    R"(
using namespace ebb;
using namespace ebb::cuda;
using namespace ebb::functors;
using I = )";
constexpr const char* kLoop = R"(;
extern "C" __global__ void __launch_bounds__(256) fused(const FusedArguments a) {
const I count = a.count, threads = I(gridDim.x) * blockDim.x;
for (I i = (I(blockIdx.x) * blockDim.x + threadIdx.x) * 4; i < count; i += threads * 4) {
const I rest = count - i;
constexpr int lanes = 4;
FusedValue<T> out[lanes];
)";
// The terms of a sum (fold_block.h).
constexpr const char* kTerms = R"(;
struct Terms {
const FusedArguments& a;
__device__ std::int64_t begin(std::int64_t result) const { return result * a.plan.terms; }
template <int lanes>
__device__ Pack<T, lanes> load(std::int64_t begin, std::int64_t at) const {
const I i = begin + at, rest = lanes;
Pack<T, lanes> out;
)";
constexpr const char* kSum = R"(return out;
}
};
extern "C" __global__ void __launch_bounds__(256) fused(const FusedArguments a) {
const bool packed = a.plan.results == 1 || a.plan.terms % kPack<T> == 0;
fold_block(Sum<T, Terms>{{a}, static_cast<T*>(a.out), a.divisor, packed}, a.plan, a.parts);
}
)";

class Writer {
 public:
  Writer(const FusedChain& chain, std::span<const Spec> inputs, const Spec& out)
      : chain_(chain), inputs_(inputs), out_(out) {}

  FusedText write() {
    const Shape& shape = chain_.sum ? chain_.summed : out_.shape;
    const bool is_short = shape.elements() <= std::numeric_limits<std::int32_t>::max();
    text_ = std::string(kBegin) + (is_short ? "std::uint32_t" : "std::uint64_t") +
            ";\nusing T = " + type_of(out_.dtype) + (chain_.sum ? kTerms : kLoop) +
            "const bool whole = rest >= 4 && a.takes_packs;\n";
    for (std::size_t k = 0; k < inputs_.size(); ++k) read(k);
    text_ += "#pragma unroll\nfor (int j = 0; j < lanes; ++j) {\n";
    for (std::size_t s = 0; s < chain_.steps.size(); ++s) {
      const FusedStep& step = chain_.steps[s];
      text_ += "const auto " + value(inputs_.size() + s) + " = fused_result<" +
               type_of(step.dtype) + ">(" + result(step) + ", a.zero);\n";
    }
    text_ += "out[j] = " + value(inputs_.size() + chain_.steps.size() - 1) + ";\n}\n" +
             (chain_.sum ? kSum : "fused_write<T>(a.out, out, i, rest, whole);\n}\n}\n");
    return {std::move(text_), std::move(numbers_)};
  }

 private:
  // The name of a value, within the loop over lanes.
  std::string value(std::size_t number) const {
    return "v" + std::to_string(number) + (number < inputs_.size() ? "[j]" : "");
  }
  DType dtype_of_value(std::size_t number) const {
    return number < inputs_.size() ? inputs_[number].dtype
                                   : chain_.steps[number - inputs_.size()].dtype;
  }
  // A number that the kernel gets as an argument.
  std::string number(double value) {
    numbers_.push_back(value);
    return "a.numbers[" + std::to_string(numbers_.size() - 1) + "]";
  }
  // A number as a tensor of the dtype has it.
  std::string element(DType dtype, double value) {
    return std::string("fused_value(convert<") + converted_type(dtype) + ">(" + number(value) +
           "))";
  }
  // An integer is part of the text.
  template <class T>
  static std::string literal(T value) {
    return "static_cast<" + std::string(type_of(dtype_of<T>)) + ">(" +
           std::to_string(static_cast<std::uint64_t>(value)) + "u)";
  }

  void read(std::size_t k) {
    const std::string name = "v" + std::to_string(k), type = type_of(inputs_[k].dtype),
                      array = "a.inputs[" + std::to_string(k) + "]";
    const Shape &from = inputs_[k].shape, &to = chain_.broadcast_to[k];
    text_ += "FusedValue<" + type + "> " + name + "[4];\n";
    if (from.elements() == to.elements()) {
      text_ += "fused_read<" + type + ">(" + name + ", " + array +
               ", i, rest, whole, [](I i) { return i; });\n";
      return;
    }
    const BroadcastWalk<1> walk(to, from);
    // An index beyond the last axis goes on with that axis.
    std::string place = "[](I i) { I at = 0;";
    for (int axis = 0; axis < walk.axes(); ++axis) {
      const std::string step = std::to_string(walk.steps(axis)[0]) + "u",
                        size = std::to_string(walk.size(axis)) + "u";
      if (axis + 1 == walk.axes())
        place += " at += i * " + step + ";";
      else
        place += " at += i % " + size + " * " + step + "; i /= " + size + ";";
    }
    place += " return at; }";
    const bool has_rows_of_packs = walk.row_elements() % 4 == 0;
    if (from.elements() == 1 || (walk.one(0) && has_rows_of_packs))
      text_ += "fused_read_one<" + type + ">(" + name + ", " + array + ", (" + place + ")(i));\n";
    else
      text_ += "fused_read<" + type + ">(" + name + ", " + array + ", i, rest, " +
               (has_rows_of_packs ? "whole, " : "false, ") + place + ");\n";
  }

  std::string result(const FusedStep& step) {
    for (const OfNumbers& kernel : kOfNumbers)
      if (kernel.run == step.run)
        return is_floating(step.dtype) ? apply(step, kernel.floating)
                                       : on_integers(step, kernel.operation);
    if (step.run == integers)
      return on_integers(
          step, static_cast<IntegerOperation>(step.attributes.get<NumberAndOperation>().operation));
    if (step.run == compare) return comparison(step);
    if (step.run == where) return choice(step);
    if (step.run == fill) return element(step.dtype, step.attributes.get<FillAttributes>().value);
    if (step.run == cast) return converted(step);
    return apply(step, step.run);
  }

  // f(x, y) of the operands.
  std::string apply(const FusedStep& step, Kernel run) {
    const auto* const known = std::ranges::find(kApplied, run, &Applied::run);
    if (known == std::end(kApplied))
      throw Error(std::string("[") + step.name + "] has no text for a fused kernel");
    std::string text = known->functor + std::string("{");
    const auto words = step.attributes.words();
    for (std::size_t p = 0; p < known->parameters; ++p)
      text += (p > 0 ? ", " : "") + number(std::bit_cast<double>(words[p]));
    text += "}(";
    if (known->takes_number) {
      const auto [x, y] =
          operands(step, 0, step.attributes.get<NumberOperand>(), [&](double given) {
            return std::string("static_cast<FusedValue<") + type_of(step.dtype) + ">>(" +
                   number(given) + ")";
          });
      return text + x + ", " + y + ")";
    }
    for (std::size_t k = 0; k < step.count; ++k)
      text += (k > 0 ? ", " : "") + value(step.operands[k]);
    return text + ")";
  }

  struct Two {
    std::string x, y;
  };
  // The operands from the `first` on, one of which may be a number. A single one is both.
  template <class Number>
  Two operands(const FusedStep& step, std::size_t first, const NumberOperand& told,
               const Number& number) {
    const std::string a = value(step.operands[first]), b = value(step.operands[step.count - 1u]);
    if (told.position == NumberOperand::left) return {number(told.value), b};
    return {a, told.position == NumberOperand::right ? number(told.value) : b};
  }

  std::string on_integers(const FusedStep& step, IntegerOperation operation) {
    const auto [x, y] = operands(step, 0, step.attributes.get<NumberOperand>(), [&](double given) {
      return integer(step.dtype, [&]<class T>(T) { return literal(convert<T>(given)); });
    });
    return std::string("OnIntegers<") + type_of(step.dtype) + ">{IntegerOperation{" +
           std::to_string(static_cast<int>(operation)) + "}}(" + x + ", " + y + ")";
  }
  // f of a value of an integer dtype's type, bool as u8.
  template <class F>
  static std::string integer(DType dtype, const F& f) {
    if (dtype == DType::i32) return f(std::int32_t{});
    return dtype == DType::i64 ? f(std::int64_t{}) : f(std::uint8_t{});
  }

  std::string comparison(const FusedStep& step) {
    const DType dtype = dtype_of_value(step.operands[0]);
    const auto& told = step.attributes.get<NumberAndOperation>();
    auto operation = static_cast<Comparison>(told.operation);
    if (told.number.position == NumberOperand::left) operation = exchanged(operation);
    Two of{value(step.operands[0]), value(step.operands[step.count - 1u])};
    if (told.number.position != NumberOperand::none)
      of.y =
          is_floating(dtype) ? element(dtype, told.number.value) : integer(dtype, [&]<class T>(T) {
            const auto against = against_integer<T>(operation, told.number.value);
            operation = against.operation;
            return literal(against.number);
          });
    std::string text;
    for (const char* c = kComparisons[static_cast<std::size_t>(operation)]; *c != 0; ++c)
      text += *c == 'x' ? of.x : *c == 'y' ? of.y : std::string(1, *c);
    return text;
  }

  std::string choice(const FusedStep& step) {
    const auto [x, y] = operands(step, 1, step.attributes.get<NumberOperand>(),
                                 [&](double given) { return element(step.dtype, given); });
    return value(step.operands[0]) + " != 0 ? " + x + " : " + y;
  }

  std::string converted(const FusedStep& step) {
    const std::size_t from = step.operands[0];
    return std::string("fused_value(convert<") + converted_type(step.dtype) + ">(" + value(from) +
           (dtype_of_value(from) == DType::boolean ? " != 0" : "") + "))";
  }

  static constexpr auto kOfNumbers = all_of_numbers(ebb::detail::AllIntegerFunctors());

  const FusedChain& chain_;
  const std::span<const Spec> inputs_;
  const Spec& out_;
  std::string text_;
  std::vector<double> numbers_;
};

}  // namespace

FusedText fused_text(const FusedChain& chain, std::span<const Spec> inputs, const Spec& out) {
  return Writer(chain, inputs, out).write();
}

detail::Ref<Prepared> fused_prepare(const MemoryQuery& query) {
  return compile_fused({query, fused_text(*query.attribute<FusedAttributes>().chain, query.inputs,
                                          query.outputs[0])});
}

}  // namespace ebb::cuda
