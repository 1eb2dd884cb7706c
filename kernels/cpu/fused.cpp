#include "ebb/core/kernels/fused.h"

#include <array>
#include <atomic>
#include <optional>

#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/sum_runs.h"

namespace ebb::cpu {
namespace {

// Elements that all steps take before the next ones: few enough for a chain's values to stay in
// the cache, enough for the calls of its steps not to count.
constexpr std::int64_t kElements = 1024;
// Slots lie some lines apart: a step's operands would share sets of the cache otherwise.
constexpr std::size_t kSlotBytes = kElements * sizeof(double) + 5 * 64;
constexpr std::size_t kMostValues = FusedChain::kMostValues;

// to[i] = the element of an input at element begin + i of the shape that it broadcasts to.
template <class Word>
void expand(const Word* from, const BroadcastWalk<1>& walk, std::int64_t begin, std::int64_t count,
            Word* to) noexcept {
  const std::int64_t n = walk.row_elements(), end = begin + count;
  std::int64_t row = begin / n, within = begin % n;
  for (; begin < end; ++row, within = 0) {
    const std::int64_t part = std::min(n - within, end - begin);
    std::int64_t at[1];
    walk.row(row, at);
    if (walk.one(0))
      std::fill_n(to, part, from[at[0]]);
    else
      std::copy_n(from + at[0] + within, part, to);
    to += part;
    begin += part;
  }
}

// How the inputs of a chain are read.
class Inputs {
 public:
  // `aligned`: blocks begin at multiples of kElements.
  Inputs(const KernelContext& context, const FusedChain& chain, bool aligned) noexcept
      : context_(context), aligned_(aligned) {
    for (std::size_t i = 0; i < context.inputs.size(); ++i) {
      const Shape &from = context.inputs[i].spec.shape, &to = chain.broadcast_to[i];
      if (context.inputs[i].elements() != to.elements()) walks_[i].emplace(to, from);
    }
  }

  bool is_broadcast(std::size_t input) const noexcept { return walks_[input].has_value(); }
  // Whether all blocks read the same elements: a row that fits a whole number of times, or one
  // element.
  bool is_same(std::size_t input) const noexcept {
    const BroadcastWalk<1>& walk = *walks_[input];
    bool repeats = (aligned_ && kElements % walk.row_elements() == 0) || walk.one(0);
    for (int axis = 1; axis < walk.axes(); ++axis) repeats = repeats && walk.steps(axis)[0] == 0;
    return repeats;
  }
  void copy(std::size_t input, std::int64_t begin, std::int64_t count, void* to) const noexcept {
    const Buffer& from = context_.inputs[input];
    static_cast<void>(for_word(from.spec.dtype, [&]<class Word>(Word) {
      expand(from.as<const Word>(), *walks_[input], begin, count, static_cast<Word*>(to));
    }));
  }

 private:
  const KernelContext& context_;
  const bool aligned_;
  std::optional<BroadcastWalk<1>> walks_[kMostValues];  // of those that broadcast
};

// Computes a chain for a few elements at a time. What a step is given stays the same from block to
// block, but for the addresses of inputs that are read where they lie.
class ChainRun {
 public:
  ChainRun(const KernelContext& context, const FusedChain& chain, const Inputs& inputs) noexcept
      : context_(context), chain_(chain), inputs_(inputs), slots_of_(place()) {
    Buffer* buffer = buffers_;
    for (std::size_t s = 0; s < chain.steps.size(); ++s) {
      const FusedStep& step = chain.steps[s];
      steps_[s] = {.inputs = {buffer, step.count},
                   .outputs = {buffer + step.count, 1},
                   .attributes = &step.attributes};
      for (const std::uint8_t value : step.read()) fill_in(*buffer++, value);
      fill_in(*buffer++, context.inputs.size() + s);
    }
    end_ = buffer;
    set_count(kElements);
  }

  // Writes elements [begin, begin + count) of the result, at most kElements.
  Status make(std::int64_t begin, std::int64_t count, void* to) noexcept {
    if (count != count_) set_count(count);
    for (std::size_t m = 0; m < moving_count_; ++m) {
      const Buffer& whole = context_.inputs[moving_[m].input];
      moving_[m].buffer->data =
          whole.as<std::byte>() + begin * static_cast<std::int64_t>(size_of(whole.spec.dtype));
    }
    (end_ - 1)->data = to;
    std::size_t copied = 0;
    for (std::size_t s = 0; s < chain_.steps.size(); ++s) {
      for (; copied < copied_count_ && copied_[copied].step == s; ++copied)
        inputs_.copy(copied_[copied].input, begin, count, slot(copied_[copied].input));
      if (const Status status = chain_.steps[s].run(steps_[s]); !status.ok()) return status;
    }
    return {};
  }

 private:
  using Slots = std::array<std::int8_t, kMostValues>;  // by value; -1: an input where it lies

  // A value's slot goes to another after the step that reads it last.
  Slots place() noexcept {
    Slots slots;
    slots.fill(-1);
    std::uint32_t used = 0;
    const auto take = [&](std::size_t value) {
      std::int8_t free = 0;
      while ((used >> free & 1u) != 0) ++free;
      used |= 1u << free;
      slots[value] = free;
    };
    const std::size_t inputs = context_.inputs.size(), steps = chain_.steps.size();
    std::size_t last_read[kMostValues] = {};
    for (std::size_t s = 0; s < steps; ++s)
      for (const std::uint8_t value : chain_.steps[s].read()) last_read[value] = s;
    for (std::size_t i = 0; i < inputs; ++i)
      if (inputs_.is_broadcast(i) && inputs_.is_same(i)) {
        take(i);
        last_read[i] = steps;  // stays
        inputs_.copy(i, 0, std::min(kElements, chain_.broadcast_to[i].elements()),
                     slots_[slots[i]]);
      }
    for (std::size_t s = 0; s < steps; ++s) {
      const FusedStep& step = chain_.steps[s];
      for (const std::uint8_t value : step.read())
        if (value < inputs && inputs_.is_broadcast(value) && slots[value] < 0) {
          take(value);
          copied_[copied_count_++] = {s, value};
        }
      take(inputs + s);
      for (const std::uint8_t value : step.read())
        if (last_read[value] == s && slots[value] >= 0) used &= ~(1u << slots[value]);
    }
    return slots;
  }
  std::byte* slot(std::size_t value) noexcept { return slots_[slots_of_[value]]; }
  void fill_in(Buffer& buffer, std::size_t value) noexcept {
    const std::size_t inputs = context_.inputs.size();
    buffer.spec.dtype =
        value < inputs ? context_.inputs[value].spec.dtype : chain_.steps[value - inputs].dtype;
    if (slots_of_[value] >= 0)
      buffer.data = slot(value);
    else
      moving_[moving_count_++] = {&buffer, value};
  }
  void set_count(std::int64_t count) noexcept {
    count_ = count;
    for (Buffer* buffer = buffers_; buffer != end_; ++buffer) buffer->spec.shape = {count};
  }

  struct Moving {
    Buffer* buffer;
    std::size_t input;
  };
  struct Copied {
    std::size_t step, input;
  };
  static constexpr std::size_t kMostBuffers = 4 * kMostValues;

  const KernelContext& context_;
  const FusedChain& chain_;
  const Inputs& inputs_;
  std::int64_t count_ = 0;
  std::size_t moving_count_ = 0, copied_count_ = 0;
  Moving moving_[kMostBuffers];
  Copied copied_[kMostValues];  // before its first step, in each block
  alignas(64) std::byte slots_[kMostValues][kSlotBytes];
  const Slots slots_of_;
  Buffer buffers_[kMostBuffers], *end_ = nullptr;
  KernelContext steps_[kMostValues];
};

// The elements of a chain's result for a sum, which are made when it asks for them.
template <class T>
class Summands {
 public:
  Summands(const KernelContext& context, const FusedChain& chain, const Inputs& inputs,
           std::atomic<const char*>& problem) noexcept
      : run_(context, chain, inputs), problem_(problem) {}

  const T* operator()(std::int64_t begin, std::int64_t count) noexcept {
    for (std::int64_t i = 0; i < count; i += kElements)
      if (const Status status = run_.make(begin + i, std::min(kElements, count - i), made_ + i);
          !status.ok())
        problem_ = status.problem;
    return made_;
  }

 private:
  ChainRun run_;
  std::atomic<const char*>& problem_;
  T made_[kSumChunk];
};

}  // namespace

Status fused(const KernelContext& context) {
  const FusedChain& chain = *context.attribute<FusedAttributes>().chain;
  const Buffer& out = context.outputs[0];
  const Inputs inputs(context, chain, !chain.sum);
  std::atomic<const char*> problem = nullptr;
  if (chain.sum) {
    const std::int64_t count = chain.summed.elements(), results = out.elements();
    const Status status = for_wide(out.spec.dtype, [&]<class T>(T) {
      sum_runs(MergedAxes(chain.summed, chain.sum->axes), out.as<T>(),
               chain.sum->divisor(count, results),
               [&] { return Summands<T>(context, chain, inputs, problem); });
    });
    if (!status.ok()) return status;
  } else {
    const auto size = static_cast<std::int64_t>(size_of(out.spec.dtype));
    for_pieces(out.elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      ChainRun run(context, chain, inputs);
      for (; begin < end; begin += kElements)
        if (const Status status = run.make(begin, std::min(kElements, end - begin),
                                           out.as<std::byte>() + begin * size);
            !status.ok())
          problem = status.problem;
    });
  }
  return problem ? Status::fail(problem) : Status();
}

}  // namespace ebb::cpu
