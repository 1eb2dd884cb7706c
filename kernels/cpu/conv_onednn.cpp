#include "ebb/kernels/cpu/conv_library.h"

#ifdef EBB_HAVE_ONEDNN
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <tuple>

#include "ebb/core/kernels/carver.h"
#include "ebb/kernels/cpu/onednn.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// A kernel's description from its operation's, and the forward one's where it is a gradient's.
template <class Primitive, class... Forward>
typename Primitive::primitive_desc describe(const auto& operation, const Forward&... forward) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return std::apply(
      [&](const auto&... its) -> typename Primitive::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
        return {engine(), its..., forward..., attributes};
#else
        return {typename Primitive::desc(its...), attributes, engine(), forward...};
#endif
      },
      operation);
}

dnnl::memory memory(const Desc& desc, const float* data) {
  return {desc, engine(), const_cast<float*>(data)};
}

// An operand as it lies, and as the kernel wants it.
class Operand {
 public:
  Desc plain, wanted;
  int name;

  // Of so many elements from each of the first axis to the next.
  Operand(const Dims& sizes, std::int64_t stride, int as)
      : wanted(sizes, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any),
        name(as),
        one_(sizes) {
    Dims strides(sizes.size(), 1);
    for (std::size_t axis = sizes.size() - 1; axis > 0; --axis)
      strides[axis - 1] = strides[axis] * sizes[axis];
    const bool is_image = as != DNNL_ARG_WEIGHTS && as != DNNL_ARG_DIFF_WEIGHTS;
    if (is_image && stride > strides[0]) std::swap(copies_, one_[0]);
    strides[0] = plain_step_ = stride;
    plain = Desc(sizes, dnnl::memory::data_type::f32, strides);
  }

  void choose(const dnnl::primitive_desc_base& kernel, bool is_result) {
    wanted = kernel.query_md(dnnl::query::exec_arg_md, name);
    if (!is_copied()) return;
    from_ = plain.submemory_desc(one_, Dims(one_.size(), 0));
    to_ = wanted.submemory_desc(one_, Dims(one_.size(), 0));
    from_step_ = plain_step_;
    to_step_ = static_cast<std::int64_t>(wanted.get_size() / sizeof(float)) / copies_;
    if (is_result) {
      std::swap(from_, to_);
      std::swap(from_step_, to_step_);
    }
    copy_ = dnnl::reorder({engine(), from_, engine(), to_});
    dnnl::post_ops sum;
    sum.append_sum();
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(sum);
    add_ = dnnl::reorder({engine(), from_, engine(), to_, attributes});
  }
  bool is_copied() const { return plain != wanted; }
  std::size_t bytes() const { return is_copied() ? wanted.get_size() : 0; }

  // From one to the other, or added to what is there.
  void copy(const float* from, float* to, bool adds) const {
    dnnl::stream stream(engine());
    for (std::int64_t i = 0; i < copies_; ++i) {
      dnnl::memory in = memory(from_, from + i * from_step_), out = memory(to_, to + i * to_step_);
      (adds ? add_ : copy_).execute(stream, in, out);
    }
  }

 private:
  // What is copied at once: one image where they have gaps between them, since oneDNN takes more
  // than twice as long for all of them.
  Dims one_;
  std::int64_t copies_ = 1, plain_step_ = 0, from_step_ = 0, to_step_ = 0;
  Desc from_, to_;
  dnnl::reorder copy_, add_;
};

// Some images of a convolution, and some groups or, where there is but one, some channels of the
// result.
ConvLayout piece_of(ConvPart part, ConvLayout of, std::int64_t images, std::int64_t block) {
  of.images = images;
  (of.groups > 1 ? of.groups : part == ConvPart::input_gradient ? of.channels : of.filters) = block;
  return of;
}
Dims sizes_of_weights(const ConvLayout& of) {
  Dims sizes{of.filters, of.channels, of.kernel_height, of.kernel_width};
  if (of.groups > 1) sizes.insert(sizes.begin(), of.groups);
  return sizes;
}

// oneDNN's kernel for such a piece.
class Kernel {
 public:
  // Throws dnnl::error, dnnl_unimplemented where it has only slow ones.
  Kernel(ConvPart part, const ConvLayout& of, const ConvLayout& piece)
      : part_(part),
        x_({piece.images, piece.groups * piece.channels, of.height, of.width},
           of.groups * of.channels * of.pixels(),
           part == kInput ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC),
        weights_(sizes_of_weights(piece), of.depth() * (piece.groups > 1 ? of.filters : 1),
                 part == kWeights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS),
        y_({piece.images, piece.groups * piece.filters, of.out_height, of.out_width},
           of.groups * of.filters * of.places(),
           part == kForward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST) {
    const Dims stride{of.stride[0], of.stride[1]}, padding{of.padding[0], of.padding[1]},
        dilation{of.dilation[0] - 1, of.dilation[1] - 1};
    const auto sizes = std::tuple(dnnl::algorithm::convolution_direct, x_.wanted, weights_.wanted,
                                  y_.wanted, stride, dilation, padding, padding);
    const auto forward = describe<dnnl::convolution_forward>(
        std::tuple_cat(std::tuple(dnnl::prop_kind::forward_training), sizes));
    dnnl::primitive_desc_base its = forward;
    if (part == kInput) its = describe<dnnl::convolution_backward_data>(sizes, forward);
    if (part == kWeights) its = describe<dnnl::convolution_backward_weights>(sizes, forward);
    if (!std::string_view(its.impl_info_str()).starts_with("jit"))
      throw dnnl::error(dnnl_unimplemented, "none of its own");
    for (Operand* each : {&x_, &weights_, &y_}) each->choose(its, each == &out());
    scratch_ = its.query_md(dnnl::query::scratchpad_md);
    primitive_ = dnnl::primitive(its.get());
  }

  const Operand& a() const { return part_ == kInput ? y_ : x_; }
  const Operand& b() const { return part_ == kWeights ? y_ : weights_; }
  const Operand& out() const { return part_ == kForward ? y_ : part_ == kInput ? x_ : weights_; }
  std::size_t scratch_bytes() const { return scratch_.get_size(); }

  // The operand as the kernel wants it: itself, or a copy at `to`.
  static const float* read(const Operand& operand, const float* from, float* to) {
    if (!operand.is_copied()) return from;
    operand.copy(from, to, false);
    return to;
  }
  // Operands as the kernel wants them. The result may be copied from `there`.
  void run(const float* from_a, const float* from_b, float* there, float* scratch, float* to,
           bool adds) const {
    float* const result = out().is_copied() ? there : to;
    dnnl::stream stream(engine());
    primitive_.execute(stream, {{a().name, memory(a().wanted, from_a)},
                                {b().name, memory(b().wanted, from_b)},
                                {out().name, memory(out().wanted, result)},
                                {DNNL_ARG_SCRATCHPAD, memory(scratch_, scratch)}});
    if (result != to) out().copy(result, to, adds);
  }

 private:
  static constexpr auto kForward = ConvPart::forward, kInput = ConvPart::input_gradient,
                        kWeights = ConvPart::weight_gradient;

  ConvPart part_;
  Operand x_, weights_, y_;
  Desc scratch_;
  dnnl::primitive primitive_;
};

// Made once for each shape; of many, those stay that were used last. Null where there is none.
std::shared_ptr<const Kernel> kernel_for(ConvPart part, const ConvLayout& of, std::int64_t images,
                                         std::int64_t block) {
  ConvLayout sizes = of;
  sizes.images = images;
  using Key = std::array<std::int64_t, sizeof sizes / 8>;
  constexpr std::size_t kMost = 1024;
  const std::tuple key(part, block, std::bit_cast<Key>(sizes));
  struct Made {
    std::shared_ptr<const Kernel> kernel;
    std::uint64_t used = 0;
  };
  static std::mutex mutex;
  static std::map<std::remove_const_t<decltype(key)>, Made> made;
  static std::uint64_t uses = 0;
  const std::lock_guard lock(mutex);
  if (const auto found = made.find(key); found != made.end()) {
    found->second.used = ++uses;
    return found->second.kernel;
  }
  std::shared_ptr<const Kernel> kernel;
  try {
    const OneThread one_thread;
    kernel = std::make_shared<Kernel>(part, of, piece_of(part, of, images, block));
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw std::bad_alloc();
  }
  if (made.size() == kMost)
    made.erase(
        std::ranges::min_element(made, {}, [](const auto& entry) { return entry.second.used; }));
  made.emplace(key, Made{kernel, ++uses});
  return kernel;
}

// Where oneDNN's kernels take less time than products of tiles, on AVX2 or on AVX-512. They are
// made for channels by the vector; to a gradient of many weights each piece adds all of them.
bool is_faster(ConvPart part, const ConvLayout& of) noexcept {
  if (of.taps() == 1 || of.images == 0 || of.channels == 0 || of.filters == 0 || of.places() == 0 ||
      !of.is_usual())
    return false;
  if (of.groups > 1) return true;
  if (part != ConvPart::weight_gradient) return of.channels >= 4 && of.filters >= 16;
  return of.channels <= 64 || of.channels * of.pixels() <= 8 * 1024;
}

// A piece is some images and some channels of the result; of a weight gradient, some channels, for
// some images after the other.
struct Pieces {
  static constexpr std::int64_t kPieces = 8, kLeastChannels = 64;
  // Elements of a piece, where it may have several images, and of one image.
  static constexpr std::int64_t kElements = 96 * 1024, kMostElements = 512 * 1024;
  static constexpr std::int64_t kPositions = 256;  // of a piece, where there are so many

  ConvPart part;
  ConvLayout of;
  std::int64_t images = 0, chunks = 0;  // images of a piece
  std::int64_t block = 0, blocks = 0;   // channels of a piece
  // Elements of an operand from one piece to the next.
  struct Steps {
    std::int64_t chunk = 0, block = 0;
    std::int64_t at(std::int64_t c, std::int64_t b) const noexcept { return c * chunk + b * block; }
  } a_step, b_step, out_step;
  // [whether of the last images][whether of the last channels]
  std::shared_ptr<const Kernel> kernels[2][2];
  std::size_t a_bytes = 0, b_bytes = 0, last_b_bytes = 0, out_bytes = 0, scratch_bytes = 0;
  bool suit = false;

  Pieces(ConvPart its_part, const ConvLayout& layout) : part(its_part), of(layout) {
    const std::int64_t of_x = of.channels * of.pixels(), of_y = of.filters * of.places();
    const std::int64_t channels = part == ConvPart::input_gradient ? of.channels : of.filters;
    // The result is cut into groups or, where there is but one, into channels.
    const bool is_grouped = of.groups > 1;
    const std::int64_t count = is_grouped ? of.groups : channels, each = is_grouped ? channels : 1;
    const std::int64_t unit = divide_up(16, each);
    const auto block_of = [&](std::int64_t pieces) {
      const std::int64_t least = !is_grouped && of.channels < 16 ? 16 : kLeastChannels;
      return std::min(count,
                      round_up(std::max(divide_up(count, pieces), divide_up(least, each)), unit));
    };
    const std::int64_t image = is_grouped ? unit * (of_x + of_y)
                               : sums()   ? of_x + block_of(kPieces) * of.places()
                                          : of_x + of_y;
    if (image > kMostElements) return;
    const std::int64_t fit = std::max<std::int64_t>(1, kElements / image);
    std::int64_t most = is_grouped ? divide_up(fit, divide_up(block_of(kPieces), unit)) : fit;
    if (!sums()) most = std::min(most, divide_up(kPositions, of.places()));
    // Batches often are a power of two.
    most = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
    images = std::min(of.images, most);
    chunks = divide_up(of.images, images);
    std::int64_t usual = block_of(sums() ? kPieces : divide_up(kPieces, chunks));
    if (is_grouped) usual = std::min(usual, std::max<std::int64_t>(1, fit / most) * unit);
    // oneDNN may have a kernel for all of them alone.
    for (const std::int64_t some : {usual, count}) {
      block = some;
      blocks = divide_up(count, block);
      if ((suit = has_kernels(count))) return;
    }
  }

  // Finds the kernels, the steps and the sizes of copies, for `count` groups or channels of the
  // result.
  bool has_kernels(std::int64_t count) {
    const bool is_grouped = of.groups > 1;
    const std::int64_t of_x = of.channels * of.pixels(), of_y = of.filters * of.places();
    a_bytes = b_bytes = last_b_bytes = out_bytes = scratch_bytes = 0;
    const Steps x{images * of.groups * of_x, block * (is_grouped ? of_x : of.pixels())},
        y{images * of.groups * of_y, block * (is_grouped ? of_y : of.places())},
        weights{0, block * (is_grouped                         ? of.filters * of.depth()
                            : part == ConvPart::input_gradient ? of.taps()
                                                               : of.depth())};
    a_step = part == ConvPart::input_gradient ? y : x;
    if (!is_grouped) a_step.block = 0;
    b_step = sums() ? y : weights;
    out_step = sums() ? weights : part == ConvPart::forward ? y : x;
    for (const bool last : {false, true})
      for (const bool end : {false, true}) {
        auto& kernel = kernels[last][end];
        kernel = kernel_for(part, of, last ? of.images - (chunks - 1) * images : images,
                            end ? count - (blocks - 1) * block : block);
        if (!kernel) return false;
        if (sums() ? chunks > 1 && !kernel->out().is_copied()
                   : kernel->b().wanted != kernels[0][end]->b().wanted)
          return false;
        a_bytes = std::max(a_bytes, aligned_bytes(kernel->a().bytes()));
        auto& its_b_bytes = end ? last_b_bytes : b_bytes;
        its_b_bytes = std::max(its_b_bytes, aligned_bytes(kernel->b().bytes()));
        out_bytes = std::max(out_bytes, aligned_bytes(kernel->out().bytes()));
        scratch_bytes = std::max(scratch_bytes, aligned_bytes(kernel->scratch_bytes()));
      }
    b_bytes = std::max(b_bytes, last_b_bytes);
    return true;
  }

  bool sums() const noexcept { return part == ConvPart::weight_gradient; }
  std::int64_t pieces() const noexcept { return sums() ? blocks : blocks * chunks; }
  std::int64_t slots() const noexcept { return std::min(kPieces, pieces()); }
  std::size_t slot_bytes() const noexcept { return a_bytes + out_bytes + scratch_bytes; }
  // Weights are copied once, in the same number of bytes however they are cut; dy by whoever reads
  // it.
  std::size_t bytes_of_b() const noexcept {
    return sums() ? static_cast<std::size_t>(slots()) * b_bytes
                  : static_cast<std::size_t>(blocks - 1) * b_bytes + last_b_bytes;
  }
  std::size_t workspace_bytes() const noexcept {
    return bytes_of_b() + static_cast<std::size_t>(slots()) * slot_bytes();
  }

  bool run(const float* a, const float* b, float* out, void* workspace) const {
    std::byte* const copies = static_cast<std::byte*>(workspace);
    std::byte* const slots_at = copies + bytes_of_b();
    std::atomic<bool> done = true;
    const auto attempt = [&done](const auto& body) {
      try {
        const OneThread one_thread;
        body();
      } catch (...) {  // dnnl::error, or no memory for its arguments
        done = false;
      }
    };
    const auto kernel = [&](std::int64_t chunk, std::int64_t i) -> const Kernel& {
      return *kernels[chunk == chunks - 1][i == blocks - 1];
    };
    // Some thread's copy of dy, or that of some weights.
    const auto copy_of_b = [&](std::int64_t i) {
      return reinterpret_cast<float*>(copies + static_cast<std::size_t>(i) * b_bytes);
    };
    const auto read_b = [&](std::int64_t chunk, std::int64_t i, std::int64_t copy) {
      return Kernel::read(kernel(chunk, i).b(), b + b_step.at(chunk, i), copy_of_b(copy));
    };
    if (!sums()) for_items(blocks, 1, [&](std::int64_t i) { attempt([&] { read_b(0, i, i); }); });
    for_slots(pieces(), slots(), [&](std::int64_t piece, std::int64_t slot) {
      const std::int64_t i = piece % blocks;
      std::byte* const at = slots_at + static_cast<std::size_t>(slot) * slot_bytes();
      const std::int64_t begin = sums() ? 0 : piece / blocks, end = sums() ? chunks : begin + 1;
      for (std::int64_t chunk = begin; chunk < end; ++chunk)
        attempt([&] {
          const Kernel& its = kernel(chunk, i);
          const float* its_a =
              Kernel::read(its.a(), a + a_step.at(chunk, i), reinterpret_cast<float*>(at));
          const float* its_b = sums()                ? read_b(chunk, i, slot)
                               : its.b().is_copied() ? copy_of_b(i)
                                                     : b + b_step.at(chunk, i);
          its.run(its_a, its_b, reinterpret_cast<float*>(at + a_bytes),
                  reinterpret_cast<float*>(at + a_bytes + out_bytes), out + out_step.at(chunk, i),
                  chunk > begin);
        });
    });
    return done;
  }
};

// None: the own way is to be taken.
std::optional<Pieces> pieces(ConvPart part, const ConvLayout& of, DType dtype) {
  if (dtype != DType::f32 || !is_faster(part, of)) return std::nullopt;
  const Pieces its(part, of);
  return its.suit ? std::optional(its) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> library_conv_workspace(ConvPart part, const ConvLayout& of,
                                                  DType dtype) {
  const auto its = pieces(part, of, dtype);
  return its ? std::optional(its->workspace_bytes()) : std::nullopt;
}

std::optional<Status> library_conv(ConvPart part, const ConvLayout& of, const Buffer& a,
                                   const Buffer& b, const Buffer& out, void* workspace) noexcept {
  try {
    const auto its = pieces(part, of, out.spec.dtype);
    if (!its) return std::nullopt;
    if (its->run(a.as<const float>(), b.as<const float>(), out.as<float>(), workspace))
      return Status{};
  } catch (const std::bad_alloc&) {
  }
  return Status::fail("oneDNN has no memory for a convolution");
}

}  // namespace ebb::cpu
#else

namespace ebb::cpu {

std::optional<std::size_t> library_conv_workspace(ConvPart, const ConvLayout&, DType) {
  return std::nullopt;
}
std::optional<Status> library_conv(ConvPart, const ConvLayout&, const Buffer&, const Buffer&,
                                   const Buffer&, void*) noexcept {
  return std::nullopt;
}

}  // namespace ebb::cpu
#endif
