#include "ebb/core/tensor/index_check.h"

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/detect_nan.h"

namespace ebb::detail {

namespace {

template <class T>
std::string find_out_of_range(const T* indices, const Spec& spec, const IndexRange& range) {
  const std::int64_t count = spec.shape.elements();
  const T* const found = std::find_if(indices, indices + count, [&](std::int64_t index) {
    return (index < 0 || index > range.size - range.taken) && index != range.ignored;
  });
  if (found == indices + count) return {};
  const int rank = spec.shape.rank() - (range.one_per_row ? 1 : 0);
  const Shape shape(spec.shape.dims().first(static_cast<std::size_t>(rank)));
  std::string place = place_of(found - indices, shape);
  if (rank > 1) place = '[' + place + ']';
  if (!place.empty()) place += ' ';
  const std::string is = place + "is " + std::to_string(*found) + ", out of range for ";
  const std::string size = std::to_string(range.size);
  if (range.kind == IndexRange::index)
    return "index " + is + (range.taken == 1 ? "" : std::to_string(range.taken) + " along ") +
           "an axis of " + size + "; a mask clamps first: where(valid, i, 0)";
  return "label " + is + size + " classes" +
         (range.ignored ? "" : "; .ignored_label leaves rows out");
}

}  // namespace

bool checks_indices(const OpDef& op, const KernelContext& context, const Runtime& runtime,
                    NanCheck nan_check) {
  if (!op.indices || runtime.is_host() || runtime.is_simulated()) return false;
  return nan_check != NanCheck::none || op.indices(context).check_labels;
}

std::string find_out_of_range(const OpDef& op, const KernelContext& context, Runtime& runtime,
                              Stream* stream, CallSite site) {
  const IndexRange range = op.indices(context);
  const Buffer& indices = context.inputs[range.input];
  if (is_floating(indices.spec.dtype)) return {};  // probabilities in place of labels
  const HostView view(runtime, stream, indices.data, indices.spec.bytes());
  const std::string found = indices.spec.dtype == DType::i32
                                ? find_out_of_range(view.as<std::int32_t>(), indices.spec, range)
                                : find_out_of_range(view.as<std::int64_t>(), indices.spec, range);
  return found.empty() ? found : message(range.function ? range.function : op.name, found, site);
}

std::string describe_failure(const OpDef& op, const KernelContext& context, const Status& status,
                             Runtime& runtime, Stream* stream, CallSite site) {
  std::string found;
  if (op.indices && runtime.is_host())
    found = find_out_of_range(op, context, runtime, stream, site);
  return found.empty() ? message(op.name, describe(status), site) : found;
}

}  // namespace ebb::detail
