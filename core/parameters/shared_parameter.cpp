#include "ebb/core/parameters/shared_parameter.h"

#include "ebb/core/base/interned.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb::detail {

SharedParameter::SharedParameter(const distributed::World& world, const std::string& name,
                                 const Spec& whole, const Tensor& share,
                                 std::shared_ptr<WholeNow> now)
    : world_(world),
      layer_(name.substr(0, name.rfind('.') + 1)),
      spec_(whole),
      attributes_(gathers(world, name, whole.shape)),
      share_(share),
      now_(std::move(now)) {}

SharedParameter::~SharedParameter() { std::erase(now_->parameters, this); }

const Ref<Storage>& SharedParameter::whole(bool for_kernel) {
  if (for_kernel && now_->layer != layer_) {
    for (SharedParameter* other : now_->parameters) other->whole_ = Tensor();
    now_->parameters.clear();
    now_->layer = layer_;
  }
  if (!whole_.defined() || version_ != share()->version()) {
    if (!whole_.defined()) now_->parameters.push_back(this);
    whole_ = Tensor();
    version_ = share()->version();
    const TapeModeScope scope(without_history(memory::Category::parameter));
    whole_ = apply_one(gather_share_op, {share_}, attributes_, entry());
  }
  return whole_.impl()->storage;
}

CollectiveAttributes gathers(const distributed::World& world, const std::string& name,
                             const Shape& whole) {
  return {.world = &world.communicator(),
          .name = interned("the parameter '" + name + "'"),
          .kind = Collective::all_gather,
          .whole = whole};
}

const Communicator* shared_by(const Tensor& parameter) noexcept {
  const TensorImpl& impl = *parameter.impl();
  if (impl.storage && impl.storage->in_shares())
    return static_cast<const SharedParameter&>(*impl.storage->in_shares()).attributes().world;
  const bool is_view = impl.node && impl.node->op == &whole_op;
  return is_view ? impl.node->attributes.get<CollectiveAttributes>().world : nullptr;
}

const std::byte* own_values(const Tensor& parameter, const std::byte* whole) {
  const TensorImpl& impl = *parameter.impl();
  const Communicator* const world = shared_by(parameter);
  if (!world || !whole) return whole;
  const Buffer values{const_cast<std::byte*>(whole), impl.spec};
  return share_in(values, world->size(), world->rank()).data();
}

void let_go(const Tensor& parameter) noexcept {
  const Ref<Storage>& storage = parameter.impl()->storage;
  if (storage && storage->in_shares())
    static_cast<SharedParameter&>(*storage->in_shares()).let_go();
}

Tensor stored(const Tensor& parameter) {
  const TensorImpl& impl = *parameter.impl();
  if (parameter.is_symbolic()) {
    if (impl.node->op != &whole_op) return parameter;
    const Node::Source& share = impl.node->inputs[0];
    return make_symbolic(share.producer->outputs[0], impl.recorder, share.producer, 0);
  }
  const Storage::InShares* const shares = impl.storage->in_shares();
  Tensor constant = shares ? static_cast<const SharedParameter*>(shares)->share_tensor().detach()
                           : make_concrete(impl.spec, impl.storage, impl.offset);
  constant.impl()->is_detached = true;
  return constant;
}

}  // namespace ebb::detail
