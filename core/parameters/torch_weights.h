// Weights that PyTorch has trained: a state_dict in a safetensors file.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ebb/core/parameters/parameters.h"

namespace ebb {

// How a module of PyTorch's lies in a state_dict, and what becomes of it.
enum class TorchLayer {
  // Linear: "weight" [out, in] becomes "weight" [in, out], "bias" stays. For models::Dense.
  linear,
  // LSTM, of any number of layers: "weight_ih_l0" [4 hidden, in] becomes "0.input" [in, 4 hidden],
  // "weight_hh_l0" likewise "0.recurrent", "bias_ih_l0" + "bias_hh_l0" "0.bias". Both have the
  // gates in the order i, f, g, o. For models::Lstm, whose backward direction "0.reverse.input"
  // is "weight_ih_l0_reverse" and so on.
  lstm,
  // GRU likewise: 3 hidden, gates in the order r, z, n; "0.bias" [4 hidden] is the sum for r and z,
  // n of "bias_ih_l0", and n of "bias_hh_l0". For models::Gru.
  gru,
  // LayerNorm, GroupNorm, BatchNorm, RMSNorm: "weight" becomes "scale", "bias" "shift", and
  // "running_var" "running_variance", which is state as "running_mean" is; "num_batches_tracked" is
  // left out. For the models of models/norm.h.
  norm,
  // MultiheadAttention: the thirds of "in_proj_weight" [3 features, features] become
  // "query.weight", "key.weight" and "value.weight" [features, features], those of "in_proj_bias"
  // their biases, and "out_proj" is a Linear, "output". For models::MultiHeadAttention.
  attention,
  // Everything keeps its name and its layout: Embedding, convolutions, parameters of one's own.
  unchanged
};

struct TorchRule {
  std::string torch;  // a module's name in the state_dict: "encoder.lstm"; "": all of it
  std::string ebb;    // the scope of its parameters here; "": those of the handle itself
  TorchLayer layer = TorchLayer::unchanged;
};

// The values of the parameters and states below a handle, by their names there, from a state_dict:
//
//   safetensors.torch.save_file(model.state_dict(), "model.safetensors")      # in Python
//
//   load_torch(params, "model.safetensors", {{"lstm", "lstm", TorchLayer::lstm},
//                                            {"fc", "head", TorchLayer::linear}});
//
// A name belongs to the rule whose scope is the longest that it begins with. Values are converted
// to the dtype that they have here, biases added before. Where a layer has no bias and the
// parameter here has one, it becomes zero. What the file has beside the modules of the rules is
// left alone.
//
// Throws FileError which lists all that does not fit, with both shapes: what has no rule, what the
// file does not have, what is of another shape, and what a module of the rules has and nobody
// reads (an LSTM's projection); and what the file has instead.
std::map<std::string, Tensor> torch_weights(const Parameters& parameters, const std::string& file,
                                            const std::vector<TorchRule>& rules,
                                            CallSite site = CallSite::here());

// Sets the values of eager parameters and states to those. Slots stay. Throws likewise; then
// nothing has changed. For a graph: for (auto& [name, value] : torch_weights(params, file, rules))
// session.assign(params[name], value);
//
// Both take memory of the host for a copy of all values meanwhile, and while a tensor is converted,
// transposed or added up, 8 bytes for each of its values and those of the file.
void load_torch(const Parameters& parameters, const std::string& file,
                const std::vector<TorchRule>& rules, CallSite site = CallSite::here());

}  // namespace ebb
