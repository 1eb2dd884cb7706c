#pragma once
#include "ebb/core/tensor/node.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/storage.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb::detail {

// Implementation behind a handle. Concrete: storage is set. Symbolic: recorder and node are set.
// Neither: only the shape is known (a gradient rule's stand-in for an input that was not kept).
struct TensorImpl final : Counted {
  static constexpr std::uint32_t kNewest = ~std::uint32_t{0};

  Spec spec;
  Ref<Storage> storage;
  std::size_t offset = 0;    // bytes into storage
  Ref<Node> node;            // the record or node that made this; null: a constant
  std::uint32_t output = 0;  // output number of that node
  // Concrete: the storage's version when this history was last true of it. Symbolic: the version of
  // the memory (lineage.h) that this reads. That is the newest at the time of use, except in
  // gradient rules and recomputed regions, which read the forward pass's version.
  std::uint32_t version = kNewest;
  bool is_leaf = false;       // made by with_grad(): the handle through which the gradient is read
  bool is_detached = false;   // a constant on purpose, whatever history its memory has
  bool lost_history = false;  // computed from a compiled step's result, which would have one
  bool used_up = false;       // it was an operator's temporary: its storage is gone
  bool is_selection = false;  // result of an operator that selects, or a view of such a temporary
  Ref<Recorder> recorder;

  TensorImpl() = default;
  ~TensorImpl();

  // Makes `record` this concrete tensor's history.
  void tie(Ref<Node> record, std::uint32_t which) noexcept {
    node = std::move(record);
    output = which;
    version = storage ? storage->version() : 0;
  }
};

inline Tensor adopt(TensorImpl* impl) noexcept {
  impl->retain_new();
  return Tensor(impl);
}

// A concrete tensor over existing memory.
Tensor make_concrete(const Spec& spec, Ref<Storage> storage, std::size_t offset = 0);
// A concrete tensor with memory of its own, not initialised. Throws OutOfMemory.
Tensor allocate(const Spec& spec, const Device& device, memory::Category category,
                const memory::Tag& tag);
Tensor make_symbolic(const Spec& spec, Ref<Recorder> recorder, Ref<Node> node,
                     std::uint32_t output);
Tensor shape_only(const Spec& spec);

// Layer of the parameter, state or slot that a tensor is or views; 0 for others.
inline unsigned layer_of(const TensorImpl& impl) noexcept {
  if (impl.storage) return impl.storage->layer();
  if (!impl.node) return 0;
  const Node& owner = impl.node->root ? *impl.node->root : *impl.node;
  return owner.op->is_source ? owner.site.layer : 0;
}

// Throws Error if an update of this memory has failed half-way and it has not been set since.
void require_whole(const Storage& storage, const char* what, CallSite site);
// Throws Error if this memory is another library's, which lets others only read it.
void require_writable(const Storage& storage, const char* what, CallSite site);

inline bool is_shape_only(const TensorImpl& t) noexcept { return !t.storage && !t.recorder; }
// On the tensor's device. Throws where Storage::data() does.
inline void* data(const Tensor& tensor) {
  return tensor.impl()->storage ? tensor.impl()->storage->data() + tensor.impl()->offset : nullptr;
}

// Throws SimulatedRead on a simulated device, unless a prediction gives values to read there.
void require_readable(const TensorImpl& impl, const char* what, CallSite site);
// Copies `count` elements from `first` on to the host; on a twin, the values given in their place.
void copy_elements(const TensorImpl& impl, std::size_t first, std::size_t count, void* to,
                   const char* what, CallSite site);

// Copies the values of a concrete tensor on any device to memory of `runtime`, in the order of
// `stream`. Copies nothing to a simulated device.
void transfer(const Tensor& from, Runtime& runtime, Stream* stream, void* to);

}  // namespace ebb::detail
