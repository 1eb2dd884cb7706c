// Weights trained in PyTorch: a state_dict in a safetensors file.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ebb/core/parameters/parameters.h"

namespace ebb {

// Layout of a module's tensors in PyTorch.
enum class TorchLayer {
  by_shape,   // a matrix "weight" is transposed if only that fits; a square one is refused
  linear,     // a matrix "weight" is Linear's [out, in], and becomes Dense's [in, out]
  unchanged,  // all is as here: Embedding, GPT-2's Conv1D [in, out]
  ignored     // all is left out: buffers, a head that is not wanted
};

// Names a part of the state_dict and the part of the parameters that it becomes. A '*' stands for
// some text without dots, and for the same text on the other side.
struct TorchRule {
  std::string torch;     // module or tensor in the state_dict: "encoder.layer.*.output"; "": all
  std::string ebb = {};  // scope or parameter here: "block.*.output"; "": the handle itself
  TorchLayer layer = TorchLayer::by_shape;
};

// Loads a state_dict: the values of the parameters and states below a handle, found by their names.
//
//   safetensors.torch.save_file(model.state_dict(), "model.safetensors")      # in Python
//
//   load_torch(params, "model.safetensors", {{"rnn", "lstm"},
//                                            {"layers.*.fc", "block.*.out", TorchLayer::linear},
//                                            {"layers.*.mask", {}, TorchLayer::ignored}});
//
// The rule with the longest scope counts, and of those the one with the fewest '*'. Several such
// rules tie their tensors: {"wte", "token"}, {"lm_head", "token"} read a head that is the embedding
// from whichever the file has; if it has both, they must be equal.
//
// Tensors have the names of a rule, then their own, or these in place of ebb's:
// - Norms: "weight" for "scale", "bias" for "shift", "running_var" for "running_variance".
//   "num_batches_tracked" is ignored.
// - models::Lstm and Gru: "weight_ih_l0" [4 hidden, in], transposed, for "0.input", "weight_hh_l0"
//   likewise for "0.recurrent", "bias_ih_l0" + "bias_hh_l0" for "0.bias"; with "_reverse" for
//   "0.reverse.input" and so on. A GRU's "0.bias" [4 hidden] holds the sums for r and z, then n of
//   either bias. Where "0.recurrent_bias" is here, it is "bias_hh_l0", and "0.bias" "bias_ih_l0".
// - models::MultiHeadAttention: nn.MultiheadAttention's "in_proj_weight" and "in_proj_bias" for
//   "qkv", and "out_proj", a Linear, for "output".
// - "query", "key" and "value" are the thirds of what a "qkv" beside them would be, and a "qkv"
//   is what those three would be, side by side.
// A bias is zero if the file lacks it but has the rest of its layer. Values are converted to the
// parameter's dtype, after biases are added. Tensors that no rule names are left alone.
//
// Sets eager parameters and states; slots stay. Session::load_torch does it for a graph's. Throws
// FileError that lists every mismatch: parameters without a rule, missing in the file or of another
// shape, tensors in modules of the rules that nobody reads (an LSTM's projection), tied tensors
// that differ, and the names that the file has. Throws Error for a rule with another number of '*'
// on either side. Then nothing has changed.
//
// Takes host memory for a copy of all values. To convert, transpose or add up a tensor, it also
// takes 8 bytes for each of its values and the bytes of its tensors in the file; for one that is
// tied, its bytes once more.
void load_torch(const Parameters& parameters, const std::string& file,
                const std::vector<TorchRule>& rules, CallSite site = CallSite::here());

// A text for people, also where the rules do not fit yet: a line for each parameter and state, with
// what it would be read from or what is missing, then a line for each tensor left over in the file.
std::string torch_mapping(const Parameters& parameters, const std::string& file,
                          const std::vector<TorchRule>& rules, CallSite site = CallSite::here());

namespace detail {
// Reads a file as load_torch() does, then hands over each parameter and state with its values on
// the host; null on a simulated device.
using WriteValue = std::function<void(const Tensor& parameter, const std::byte* values)>;
void read_torch(const Parameters& parameters, const std::string& file,
                const std::vector<TorchRule>& rules, bool is_simulated, const WriteValue& write);
}  // namespace detail

}  // namespace ebb
