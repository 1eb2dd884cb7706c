#include "ebb/core/tensor/tensor.h"

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

using detail::refuse;
using detail::TensorImpl;
using memory::Category;

namespace detail {

void throw_ragged(CallSite site) { refuse<ShapeError>("from", "rows of different lengths", site); }
void throw_beyond_i64(CallSite site) {
  refuse("from", "an integer is beyond the range of i64", site);
}

Tensor make_concrete(const Spec& spec, Ref<Storage> storage, std::size_t offset) {
  auto* impl = new TensorImpl;
  impl->spec = spec;
  impl->storage = std::move(storage);
  impl->offset = offset;
  return adopt(impl);
}

Tensor allocate(const Spec& spec, const Device& device, Category category, const memory::Tag& tag) {
  return make_concrete(spec,
                       make_ref<Storage>(device, memory::Request{spec.bytes(), category, tag}));
}

Tensor make_symbolic(const Spec& spec, Ref<Recorder> recorder, Ref<Node> node,
                     std::uint32_t output) {
  auto* impl = new TensorImpl;
  impl->spec = spec;
  impl->recorder = std::move(recorder);
  impl->node = std::move(node);
  impl->output = output;
  return adopt(impl);
}

void require_whole(const Storage& storage, const char* what, CallSite site) {
  if (const char* by = storage.torn_by())
    refuse(what,
           std::string("a tensor was being updated by ") + by +
               " when that failed, and may hold half of it; assign all of it, or load it, first",
           site);
}

void require_writable(const Storage& storage, const char* what, CallSite site) {
  if (storage.is_read_only())
    refuse(what,
           "would write to memory that its lender made read-only; clone() it, or use "
           "from_dlpack(.., {.copy = true})",
           site);
}

Tensor shape_only(const Spec& spec) {
  auto* impl = new TensorImpl;
  impl->spec = spec;
  return adopt(impl);
}

void transfer(const Tensor& from, Runtime& runtime, Stream* stream, void* to) {
  if (runtime.is_simulated()) return;
  const TensorImpl& impl = *from.impl();
  const std::size_t bytes = impl.spec.bytes();
  if (&impl.storage->device().runtime() == &runtime) {
    const Storage::Use use(*impl.storage, stream);
    runtime.copy(stream, to, data(from), bytes);
  } else {
    const HostView values = impl.storage->view(impl.offset, bytes);
    runtime.copy_in(stream, to, values.data(), bytes);
  }
}

}  // namespace detail

Tensor::Tensor(const Tensor& other) noexcept : impl_(other.impl_) {
  if (impl_) impl_->retain();
}

void Tensor::release() noexcept {
  if (impl_->Counted::release()) delete impl_;
}

// Nobody can read the gradient of a leaf without a handle. A gradient with a history (create_graph)
// refers to the leaf's node: a cycle, which ends here.
detail::TensorImpl::~TensorImpl() {
  if (!is_leaf) return;
  node->extra->unreachable = true;
  node->extra->tensor = Tensor();
}

bool Tensor::is_symbolic() const noexcept { return impl_ && impl_->recorder; }

const TensorImpl& Tensor::held(const char* what, CallSite site) const {
  if (!impl_)
    refuse(what, "of a tensor that holds nothing, as .grad() does before the first backward()",
           site.resolved());
  return *impl_;
}
const Shape& Tensor::shape(CallSite site) const { return held("shape", site).spec.shape; }
DType Tensor::dtype(CallSite site) const { return held("dtype", site).spec.dtype; }

std::int64_t Tensor::size(int axis, CallSite site) const {
  const Shape& shape = held("size", site).spec.shape;
  const bool is_there = axis >= -shape.rank() && axis < shape.rank();
  if (is_there && shape.dim(axis) != kOpen) return shape.dim(axis);
  const std::string which = "axis " + std::to_string(axis);
  refuse<ShapeError>(
      "size",
      (is_there ? "the size of " + which +
                      " is not known before a session runs; size(x, axis) is a tensor of it"
                : "there is no " + which) +
          "; the tensor is " + impl_->spec.to_string(),
      site.resolved());
}

const Spec& Tensor::known(const char* what, CallSite site) const {
  const Spec& spec = held(what, site).spec;
  if (spec.shape.is_open()) [[unlikely]]
    refuse<ShapeError>(
        what,
        "the number of elements of " + spec.to_string() +
            " is not known before a session runs; size(x, axis) is a tensor of each size",
        site.resolved());
  return spec;
}
std::int64_t Tensor::elements(CallSite site) const {
  return known("elements", site).shape.elements();
}
std::size_t Tensor::bytes(CallSite site) const { return known("bytes", site).bytes(); }

Device Tensor::device(CallSite site) const {
  const bool is_there = static_cast<bool>(held("device", site).storage);
  if (const detail::Trace* trace = detail::tape_mode().trace; trace && !is_there)
    return trace->device("device", site.resolved());
  if (!is_there)
    refuse("device", "a symbolic tensor is on no device before a session runs it", site.resolved());
  return impl_->storage->device();
}

std::string Tensor::to_string() const {
  if (!impl_) return "a tensor that holds nothing";
  const std::string spec = impl_->spec.to_string();
  if (impl_->recorder) return "symbolic " + spec;
  return impl_->storage ? spec + " on " + impl_->storage->device().name() : spec;
}

namespace {
// The shape with its open dimension, if any, computed from the number of values.
Shape fill_open(const Shape& shape, std::size_t count) {
  Shape filled = shape;
  std::int64_t others = 1;
  int open = -1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape.dim(axis) == kOpen && open < 0)
      open = axis;
    else if (__builtin_mul_overflow(others, shape.dim(axis), &others))
      return shape;
  if (open < 0) return shape;
  if (others > 0 && static_cast<std::int64_t>(count) % others == 0)
    filled.set(open, static_cast<std::int64_t>(count) / others);
  return filled;
}
}  // namespace

Tensor Tensor::from_flags(const std::vector<bool>& values, const Shape& shape, const Device& device,
                          CallSite site) {
  const auto flags = std::make_unique<bool[]>(values.size());
  std::copy(values.begin(), values.end(), flags.get());
  return copy_in(flags.get(), DType::boolean, values.size(), shape, device, site);
}

// Values of the host enter here and now: while a function is traced they are constants of its
// graph, of which each call gets a copy.
Tensor Tensor::copy_in(const void* values, DType dtype, std::size_t count, const Shape& shape,
                       const Device& device, CallSite site) {
  const Shape filled = fill_open(shape, count);
  if (!filled.is_countable() || filled.is_open() ||
      filled.elements() != static_cast<std::int64_t>(count))
    refuse<ShapeError>(
        "from", std::to_string(count) + " values do not fill the shape " + shape.to_string(), site);
  Tensor tensor = detail::allocate({dtype, filled}, device, detail::tape_mode().category,
                                   detail::tag("from", site));
  tensor.impl()->storage->copy_in(0, values, tensor.bytes());
  if (const detail::Trace* const trace = detail::tape_mode().trace)
    return trace->graph().constant(tensor, "from", site);
  return tensor;
}

}  // namespace ebb
