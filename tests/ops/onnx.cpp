// Samples of operators as ONNX models, for tests/graph/onnx_runtime.py.
#include <set>

#include "ebb/core/base/error.h"
#include "ebb/graph/onnx/translation.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/graph/onnx_writer.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests {

TEST_CASE("samples are written as ONNX models", "[.onnx]") {
  std::set<std::string_view> written;
  for (const DType dtype : {DType::f32, DType::f16})
    for (const Sample& sample : all_samples(dtype)) {
      const RecordedSample recorded(sample, dtype, true);
      const auto is_in_files = [](const Tensor& x) { return x.dtype() != DType::bf16; };
      if (!std::ranges::all_of(recorded.outputs(), is_in_files)) continue;  // NumPy has no bf16
      const Tensors values = make_inputs(sample, dtype);
      Feeds feeds;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!sample.state.has(i)) feeds.push_back({recorded.inputs()[i], values[i]});
      Session session(recorded.graph());
      session.initialize();
      std::string name = sample.name + std::string(", ") + ebb::name(dtype);
      std::ranges::replace(name, '/', ' ');
      try {
        write_onnx_case(name, session, recorded.outputs(), feeds);
        written.insert(sample.op->name);
      } catch (const Error& error) {
        CHECK(std::string(error.what()).find("has no translation to ONNX") != std::string::npos);
      }
    }
  for (const auto& rule : ebb::detail::onnx_rules()) CHECK(written.contains(rule.op->name));
}

}  // namespace ebb::tests
