#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ebb/core/base/inline_vector.h"
#include "ebb/graph/passes/draft.h"

namespace ebb::detail {

// Place of a batch's rows in a value: the axis along which each row has its own neighbouring
// places, or one of these.
enum : int {
  kNoRows = -1,  // the value does not depend on rows, or only on all of them at once
  kSum = -2,     // a sum over rows: what micro-batches make of it is added
  kMean = -3,    // a mean over rows, each micro-batch's times its share of the rows: added as well
  kReserve = -4  // a reserve of bytes, which only a later step of the same micro-batch reads
};

// How an application of an operator runs on a part of the rows. An input that is read along an axis
// without having rows there is sliced.
struct RowAnswer {
  InlineVector<int, 8> reads = {};           // by input: how a micro-batch reads it
  std::optional<std::size_t> weighted = {};  // input to multiply by the share of rows
  bool weighs_outputs = false;               // outputs are multiplied by it
  bool draws = false;                        // an element's number depends on its position
};

// A question to the rule of an operator, and its answer.
struct RowQuery : RowAnswer {
  const Node& node;
  std::span<const Spec> inputs, outputs;
  std::span<const int> from;  // places of the rows in the inputs
  std::int64_t rows;
  InlineVector<int, 4> makes = {};  // answer: places of the rows in the outputs

  template <class T>
  const T& attribute() const noexcept {
    return node.attributes.get<T>();
  }
  // The same axis for all inputs and outputs.
  bool all_along(int axis) {
    reads = InlineVector<int, 8>(inputs.size());
    makes = InlineVector<int, 4>(outputs.size());
    std::fill(reads.begin(), reads.end(), axis);
    std::fill(makes.begin(), makes.end(), axis);
    return axis >= 0;
  }
  bool set(std::initializer_list<int> read, std::initializer_list<int> made) {
    reads = read;
    makes = made;
    while (reads.size() < inputs.size()) reads.push_back(kNoRows);
    return true;
  }
};

// Answers, or returns false where the operator mixes rows. Some input has rows.
using RowRule = bool (*)(RowQuery&);
// Null for an operator whose dependence on rows is not known.
RowRule row_rule(const OpDef& op);
// Whether the operator is linear in all inputs that it reads: sums of parts are parts of the sum.
bool is_linear(const OpDef& op);

// How the nodes of a draft depend on the rows of a batch.
struct Rows {
  struct Item : RowAnswer {
    bool is_cut = false;  // runs once for each micro-batch
  };
  std::int64_t count = 0;   // rows of the batch
  std::vector<int> place;   // by output of the draft
  std::vector<Item> items;  // by node of the draft
  // Why micro-batches would not compute the same; empty if they do. If it is not known whether they
  // do, `unknown` says why.
  std::string refusal, unknown;

  const std::string& reason() const noexcept { return refusal.empty() ? unknown : refusal; }
  bool can_cut() const noexcept { return reason().empty(); }
};

// Finds them for a draft after infer(). The batch is the leading axis of these feeds, or of all
// whose leading axis is open.
Rows find_rows(const Draft& draft, const std::optional<std::vector<std::size_t>>& feeds = {});

// The draft in micro-batches of nearly equal sizes, for one that can be cut. What does not depend
// on rows runs once, sums over rows are added up, fetched rows are written one after the other.
Draft cut(const Draft& draft, const Rows& rows, std::int64_t micro_batches);

}  // namespace ebb::detail
