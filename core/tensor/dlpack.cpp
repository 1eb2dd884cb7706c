#include "ebb/core/tensor/dlpack.h"

#include <algorithm>
#include <array>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/strided_walk.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"
#include "ebb/third_party/dlpack/dlpack.h"

namespace ebb {

using detail::refuse;
using detail::Storage;

namespace {

constexpr char kTo[] = "to_dlpack", kFrom[] = "from_dlpack";

constexpr DLDataType kTypes[] = {{kDLFloat, 32, 1},  {kDLFloat, 64, 1}, {kDLFloat, 16, 1},
                                 {kDLBfloat, 16, 1}, {kDLInt, 32, 1},   {kDLInt, 64, 1},
                                 {kDLUInt, 8, 1},    {kDLBool, 8, 1}};  // in the order of DType

DType dtype_from(const DLDataType& type) {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (type.code == kTypes[i].code && type.bits == kTypes[i].bits && type.lanes == 1)
      return static_cast<DType>(i);
  refuse(kFrom, "ebb has no dtype for DLPack's code " + std::to_string(type.code) + " with " +
                    std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
                    " lanes; let their library convert the values");
}

Device device_from(const DLDevice& device) {
  if (device.device_type == kDLCPU || device.device_type == kDLCUDAHost) return Device::cpu();
  if (device.device_type == kDLCUDA) return Device::cuda(device.device_id);
  refuse(kFrom, "memory of DLPack's device type " + std::to_string(device.device_type) +
                    " is neither the CPU's nor CUDA's");
}

// "cuda:1" is {kDLCUDA, 1}.
DLDevice to_device(const Device& device) {
  if (device.runtime().is_host()) return {kDLCPU, 0};
  const std::size_t colon = device.name().find(':');
  return {kDLCUDA, colon == std::string::npos ? 0 : std::stoi(device.name().substr(colon + 1))};
}

Shape shape_from(const DLTensor& theirs) {
  if (theirs.ndim < 0 || (theirs.ndim > 0 && !theirs.shape))
    refuse(kFrom, std::to_string(theirs.ndim) + " axes without sizes");
  const std::span sizes(theirs.shape, static_cast<std::size_t>(theirs.ndim));
  const Shape shape(sizes);
  if (shape.is_open()) refuse(kFrom, "an axis of size -1");
  if (!shape.is_countable()) refuse(kFrom, detail::too_large(shape));
  return shape;
}

using PerAxis = std::array<std::int64_t, kMaxRank>;

PerAxis row_major_strides(const Shape& shape) noexcept {
  PerAxis strides{};
  std::int64_t next = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = next;
    next *= std::max<std::int64_t>(shape.dim(axis), 1);
  }
  return strides;
}

// `walk` is in elements.
Tensor copied(const Spec& spec, const Device& device, const std::byte* from,
              const StridedWalk& walk) {
  Tensor copy = detail::allocate(spec, device, detail::tape_mode().category,
                                 detail::tag(kFrom, detail::entry()));
  Runtime& runtime = device.runtime();
  Stream* const stream = runtime.stream();
  const Storage::Use use(*copy.impl()->storage, stream);
  auto* to = static_cast<std::byte*>(detail::data(copy));
  const auto element = static_cast<std::int64_t>(size_of(spec.dtype));
  for (std::int64_t i = 0; i < walk.count(); ++i, to += walk.unit() * element) {
    std::int64_t at = 0, rest = i;
    for (int axis = 0; axis < walk.axes(); rest /= walk.size(axis++))
      at += rest % walk.size(axis) * walk.stride(axis);
    runtime.copy(stream, to, from + at * element, static_cast<std::size_t>(walk.unit() * element));
  }
  runtime.synchronise(stream);
  return copy;
}

Tensor take_in(const DLTensor& theirs, bool is_read_only, std::shared_ptr<void> owner, bool copy) {
  detail::refuse_while_tracing(kFrom, detail::entry());
  const Spec spec{dtype_from(theirs.dtype), shape_from(theirs)};
  const Device device = device_from(theirs.device);
  if (!theirs.data && spec.bytes() > 0)
    refuse(kFrom, "there is no memory behind " + spec.to_string());
  auto* const first = static_cast<std::byte*>(theirs.data) + theirs.byte_offset;
  const PerAxis row_major = row_major_strides(spec.shape);
  const std::int64_t* const strides = theirs.strides ? theirs.strides : row_major.data();
  StridedWalk walk(1);
  for (int axis = spec.shape.rank() - 1; axis >= 0; --axis) {
    std::int64_t extent;
    if (__builtin_mul_overflow(spec.shape.dim(axis), strides[axis], &extent))
      refuse(kFrom, "a stride of " + std::to_string(strides[axis]));
    walk.add(spec.shape.dim(axis), strides[axis]);
  }
  if (copy) return copied(spec, device, first, walk);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(first) % size_of(spec.dtype) == 0;
  if (spec.bytes() > 0 && (!is_aligned || walk.axes() > 0))
    refuse(kFrom, "the values of " + spec.to_string() + " are not " +
                      (is_aligned ? "contiguous and row-major" : "aligned to their size") +
                      "; {.copy = true} copies them");
  return detail::make_concrete(
      spec, detail::make_ref<Storage>(device, first, spec.bytes(), is_read_only, std::move(owner)));
}

template <class Managed>
std::shared_ptr<void> owner_of(Managed* theirs) {
  if (!theirs) refuse(kFrom, "of a null pointer");
  return std::shared_ptr<void>(theirs, [](Managed* managed) {
    if (managed->deleter) managed->deleter(managed);
  });
}

// A tensor while another library has it.
template <class Managed>
struct Exported final : Managed {
  explicit Exported(const Tensor& x)
      : Managed{}, storage(x.impl()->storage), strides(row_major_strides(x.shape())) {
    std::ranges::copy(x.shape().dims(), sizes.begin());
    this->dl_tensor = {.data = detail::data(x),
                       .device = to_device(storage->device()),
                       .ndim = x.rank(),
                       .dtype = kTypes[static_cast<std::size_t>(x.dtype())],
                       .shape = sizes.data(),
                       .strides = strides.data(),
                       .byte_offset = 0};
    this->deleter = [](Managed* self) { delete static_cast<Exported*>(self); };
  }

  const detail::Ref<Storage> storage;
  PerAxis sizes{}, strides;
};

// The same for both structures, up to what only one of them can say.
template <class Managed>
Managed* give(const Tensor& x) {
  detail::refuse_while_tracing(kTo, detail::entry());
  if (!x.defined() || !x.impl()->storage)
    refuse(kTo, x.to_string() + " has no values; what a session fetches has");
  const Storage& storage = *x.impl()->storage;
  if (storage.device().is_simulated())
    refuse<SimulatedRead>(kTo, x.to_string() + " has no values: the device is simulated");
  if (storage.in_shares())
    refuse(kTo, "ranks have shares of this parameter, which is not whole for long; clone() is");
  detail::require_whole(storage, kTo, detail::entry());
  Runtime& runtime = storage.device().runtime();
  Stream* const stream = runtime.stream();
  const Storage::Use use(storage, stream);
  runtime.synchronise(stream);
  return new Exported<Managed>(x);
}

}  // namespace

Tensor from_dlpack(DLManagedTensor* theirs, FromDlpackOptions options, CallSite site) {
  const detail::CallSiteScope scope(site);
  std::shared_ptr<void> owner = owner_of(theirs);
  return take_in(theirs->dl_tensor, false, std::move(owner), options.copy);
}

Tensor from_dlpack(DLManagedTensorVersioned* theirs, FromDlpackOptions options, CallSite site) {
  const detail::CallSiteScope scope(site);
  std::shared_ptr<void> owner = owner_of(theirs);
  if (theirs->version.major != DLPACK_MAJOR_VERSION)  // the other members may lie elsewhere
    refuse(kFrom, "of DLPack " + std::to_string(theirs->version.major) + "; ebb reads version 1");
  const bool is_read_only = theirs->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  return take_in(theirs->dl_tensor, is_read_only, std::move(owner), options.copy);
}

DLManagedTensorVersioned* to_dlpack(const Tensor& x, CallSite site) {
  const detail::CallSiteScope scope(site);
  auto* const given = give<DLManagedTensorVersioned>(x);
  given->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  given->flags = x.impl()->storage->is_read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return given;
}

DLManagedTensor* to_dlpack_unversioned(const Tensor& x, CallSite site) {
  const detail::CallSiteScope scope(site);
  if (x.defined() && x.impl()->storage) detail::require_writable(*x.impl()->storage, kTo, site);
  return give<DLManagedTensor>(x);
}

}  // namespace ebb
