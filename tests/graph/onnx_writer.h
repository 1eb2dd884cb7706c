// For the tests whose ONNX models onnx_runtime.py runs: writes a model, its inputs and what a
// session makes of them, into the working directory.
#pragma once
#include "ebb/core/data/tensor_files.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/session.h"

namespace ebb::tests {

inline void write_onnx_case(const std::string& name, Session& session, const Tensors& outputs,
                            const Feeds& feeds) {
  std::vector<NamedTensor> named;
  for (const Tensor& output : outputs)
    named.emplace_back("output" + std::to_string(named.size()), output);
  session.write_onnx(name + ".onnx", named);
  TensorsByName values;
  const Tensors results = session.run(outputs, feeds);
  for (std::size_t i = 0; i < results.size(); ++i) values[named[i].name] = results[i];
  for (const Feed& feed : feeds) values[feed.placeholder.impl()->node->extra->name] = feed.value;
  save_npz(name + ".npz", values);
}

}  // namespace ebb::tests
