// Weights trained in PyTorch: a state_dict in a safetensors file.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ebb/core/parameters/parameters.h"

namespace ebb {

// Kind of a PyTorch module: its names in a state_dict, and their conversion to ebb's.
enum class TorchLayer {
  // Linear: "weight" [out, in] becomes "weight" [in, out], "bias" stays. For models::Dense.
  linear,
  // LSTM with any number of layers: "weight_ih_l0" [4 hidden, in] becomes "0.input" [in, 4 hidden],
  // "weight_hh_l0" likewise "0.recurrent", "bias_ih_l0" + "bias_hh_l0" "0.bias". Both order the
  // gates i, f, g, o. For models::Lstm, whose backward direction "0.reverse.input" is
  // "weight_ih_l0_reverse" and so on.
  lstm,
  // GRU likewise, with 3 hidden and gates in the order r, z, n. "0.bias" [4 hidden] holds the sums
  // for r and z, then n of "bias_ih_l0" and n of "bias_hh_l0". For models::Gru.
  gru,
  // LayerNorm, GroupNorm, BatchNorm, RMSNorm: "weight" becomes "scale", "bias" becomes "shift".
  // "running_mean" stays and "running_var" becomes "running_variance"; both are state.
  // "num_batches_tracked" is left out. For the models of models/norm.h.
  norm,
  // MultiheadAttention: the thirds of "in_proj_weight" [3 features, features] become
  // "query.weight", "key.weight" and "value.weight" [features, features]. "in_proj_bias" is split
  // likewise, and "out_proj" is a Linear, "output". For models::MultiHeadAttention.
  attention,
  // Everything keeps its name and layout: Embedding, convolutions, parameters of one's own.
  unchanged
};

struct TorchRule {
  std::string torch;  // a module's name in the state_dict: "encoder.lstm"; "": all of it
  std::string ebb;    // scope of its parameters here; "": the handle itself
  TorchLayer layer = TorchLayer::unchanged;
};

// Reads a state_dict: the values of the parameters and states below a handle, by their names there.
//
//   safetensors.torch.save_file(model.state_dict(), "model.safetensors")      # in Python
//
//   load_torch(params, "model.safetensors", {{"lstm", "lstm", TorchLayer::lstm},
//                                            {"fc", "head", TorchLayer::linear}});
//
// A name belongs to the rule with the longest scope that it begins with. Values are converted to
// the parameter's dtype, after biases are added. A bias that the file lacks becomes zero. Contents
// of the file outside the modules of the rules are ignored.
//
// Throws FileError that lists every mismatch, with both shapes: parameters without a rule, missing
// in the file or of another shape, tensors of the modules that nobody reads (an LSTM's projection),
// and the names that the file has.
std::map<std::string, Tensor> torch_weights(const Parameters& parameters, const std::string& file,
                                            const std::vector<TorchRule>& rules,
                                            CallSite site = CallSite::here());

// Sets eager parameters and states to the values of torch_weights(). Slots stay. Throws likewise;
// then nothing has changed. For a graph: for (auto& [name, value] : torch_weights(params, file,
// rules)) session.assign(params[name], value);
//
// Both take host memory for a copy of all values. To convert, transpose or add up a tensor, they
// also take 8 bytes for each of its values and the bytes of its tensors in the file.
void load_torch(const Parameters& parameters, const std::string& file,
                const std::vector<TorchRule>& rules, CallSite site = CallSite::here());

}  // namespace ebb
