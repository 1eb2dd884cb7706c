// Contexts in which gradient rules are called, for the tape and for graphs.
#pragma once
#include <unordered_map>

#include "ebb/core/tensor/gradient_context.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tape_record.h"

namespace ebb::detail {

// The nodes of a graph's recompute regions, recorded once more where a gradient reads them, so that
// the first results need not stay alive. Updates in place inside a region are repeated too, on the
// memory of the clones. Values from outside are read at the version that the region read.
class RegionClones {
 public:
  explicit RegionClones(Ref<Recorder> recorder) : recorder_(std::move(recorder)) {}
  // The value of `source` for a gradient: from a clone if it lies in a region.
  Tensor read(const Node::Source& source);
  // The value of `source` itself.
  Tensor original(const Node::Source& source) const;

 private:
  void clone(const Node::Source& wanted);
  const Ref<Recorder> recorder_;
  std::unordered_map<const Node*, Tensors> clones_;
};

// The context of a record of the tape: tensors are rebuilt over the memory that was kept. `frees`:
// this pass frees the record afterwards, so that the rule may take what it keeps.
class TapeGradient final : public GradientContext {
 public:
  TapeGradient(TapeRecord& record, std::span<Tensor> dys, const IndexSet& wants,
               bool frees) noexcept
      : GradientContext(record, dys, wants), record_(record), frees_(frees) {}
  Tensor x(int i) const override;
  Tensor y(int i) const override;
  Tensor take_x(int i) const override;
  Tensor take_y(int i) const override;

 private:
  bool is_last(const Kept& kept) const noexcept;
  Tensor take(Tensor tensor, Kept& kept) const noexcept;
  Tensor rebuild(const Spec& spec, const Kept& kept, const Ref<Node>& producer,
                 std::uint32_t output, const char* which) const;
  TapeRecord& record_;
  const bool frees_;
};

// The context of a node of a graph: tensors are symbolic.
class GraphGradient final : public GradientContext {
 public:
  GraphGradient(Node& node, std::span<Tensor> dys, const IndexSet& wants,
                RegionClones& clones) noexcept
      : GradientContext(node, dys, wants), clones_(clones) {}
  Tensor x(int i) const override;
  Tensor y(int i) const override;

 private:
  RegionClones& clones_;
};

}  // namespace ebb::detail
