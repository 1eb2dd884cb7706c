// Parameters of which each rank of a world has a share (Sharding::parameters).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ebb/core/device/world.h"
#include "ebb/core/kernels/collective.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

class SharedParameter;

// The parameters of a set that are whole now: those of the layer that a kernel has used last, and
// what was read since.
struct WholeNow {
  std::string layer = {};
  std::vector<SharedParameter*> parameters = {};
};

// A parameter, gathered where it is first used and gone when a kernel uses one of another layer.
class SharedParameter final : public Storage::InShares {
 public:
  // `share` is this rank's, flat.
  SharedParameter(const distributed::World& world, const std::string& name, const Spec& whole,
                  const Tensor& share, std::shared_ptr<WholeNow> now);
  ~SharedParameter() override;

  std::size_t bytes() const noexcept override { return spec_.bytes(); }
  const Ref<Storage>& whole(bool for_kernel) override;
  void let_go() noexcept {
    std::erase(now_->parameters, this);
    whole_ = Tensor();
  }
  Storage* whole_now() const noexcept override {
    return whole_.defined() ? whole_.impl()->storage.get() : nullptr;
  }
  const Ref<Storage>& share() const noexcept override { return share_.impl()->storage; }
  const Tensor& share_tensor() const noexcept { return share_; }
  const Spec& spec() const noexcept { return spec_; }
  // Of the operator that gathers it.
  const CollectiveAttributes& attributes() const noexcept { return attributes_; }

 private:
  const distributed::World world_;
  const std::string layer_;
  const Spec spec_;
  const CollectiveAttributes attributes_;
  const Tensor share_;
  const std::shared_ptr<WholeNow> now_;
  Tensor whole_;
  std::uint32_t version_ = 0;  // of the share that whole_ was gathered from
};

// Attributes of the operator that makes a parameter whole.
CollectiveAttributes gathers(const distributed::World& world, const std::string& name,
                             const Shape& whole);
// The world whose ranks have shares of a parameter; null: it is whole.
const Communicator* shared_by(const Tensor& parameter) noexcept;
// Values of a parameter, from which those of this rank's share on; null stays.
const std::byte* own_values(const Tensor& parameter, const std::byte* whole);
// Ends the whole of a parameter of which ranks have shares, which nothing uses any more.
void let_go(const Tensor& parameter) noexcept;
// Where a parameter lies: the tensor itself, or this rank's share of it, flat. Without a history.
Tensor stored(const Tensor& parameter);

}  // namespace ebb::detail
