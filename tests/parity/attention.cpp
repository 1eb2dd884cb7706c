// Attention and recurrent networks.
#include "ebb/tests/parity/set.h"

namespace ebb::tests::parity {
namespace {

// Weights of a PyTorch layer, from its weight_ih, weight_hh, bias_ih and bias_hh.
LstmWeights layer(const Tensors& x, std::size_t first) {
  return {transpose(x[first]), transpose(x[first + 1]), x[first + 2], x[first + 3]};
}

Tensors all(const LstmResult& result) { return {result.sequence, result.hidden, result.cell}; }

GruWeights gru_layer(const Tensors& x, std::size_t first) {
  return {transpose(x[first]), transpose(x[first + 1]), x[first + 2], x[first + 3]};
}

}  // namespace

EBB_SAME("F.scaled_dot_product_attention(q, k, v)", scaled_dot_product_attention(x[0], x[1], x[2]));
EBB_SAME("F.scaled_dot_product_attention(.., is_causal=True)",
         scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}));
EBB_SAME("F.scaled_dot_product_attention(.., attn_mask of bool)",
         scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3]}));
EBB_SAME("F.scaled_dot_product_attention(.., attn_mask of floats, scale=s)",
         scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3], .scale = 0.3}));
EBB_SAME("attention of a query for which no key counts",
         scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3]}));
EBB_GIVES("nn.MultiheadAttention(4, 2, batch_first=True)") {
  Parameters params(Device::cpu(), Seed{1}, DType::f64);
  models::MultiHeadAttention(params, 4, {.heads = 2, .fused_qkv = true});
  const models::MultiHeadAttention attention(
      params.with({transpose(x[1]), x[2], transpose(x[3]), x[4]}), 4,
      {.heads = 2, .fused_qkv = true});
  return Tensors{attention(x[0])};
}

EBB_GIVES("nn.LSTM(3, 2, batch_first=True)") { return all(lstm(x[0], std::array{layer(x, 1)})); }
EBB_GIVES("nn.LSTM(3, 2, num_layers=2)") {
  return all(lstm(x[0], std::array{layer(x, 1), layer(x, 5)}));
}
EBB_GIVES("nn.LSTM(3, 2, bidirectional=True)") {
  Parameters params(Device::cpu(), Seed{1}, DType::f64);
  const models::Lstm model(params, 3, {.hidden = 2, .bidirectional = true, .recurrent_bias = true});
  const LstmWeights there = layer(x, 1), back = layer(x, 5);
  set(params, {{"0.input", there.input},
               {"0.recurrent", there.recurrent},
               {"0.bias", there.bias},
               {"0.recurrent_bias", there.recurrent_bias},
               {"0.reverse.input", back.input},
               {"0.reverse.recurrent", back.recurrent},
               {"0.reverse.bias", back.bias},
               {"0.reverse.recurrent_bias", back.recurrent_bias}});
  const models::LstmOutput out = model(x[0]);
  return Tensors{out.sequence, out.hidden, out.cell};
}
EBB_GIVES("nn.utils.rnn.pack_padded_sequence(x, [4, 2])") {
  return all(lstm(x[0], std::array{layer(x, 1)}, {.lengths = Tensor::from({4, 2})}));
}
EBB_GIVES("nn.GRU(3, 2, batch_first=True)") {
  const models::GruOptions options{.hidden = 2, .recurrent_bias = true};
  const Parameters params = f64();
  models::Gru(params, 3, options);
  const GruWeights of = gru_layer(x, 1);
  const models::Gru model(params.with({of.input, of.recurrent, of.bias, of.recurrent_bias}), 3,
                          options);
  const models::GruOutput result = model(x[0]);
  return Tensors{result.sequence, result.hidden};
}
EBB_SAME("nn.GRUCell(3, 2)", gru_cell(x[0], x[1], gru_layer(x, 2)));
EBB_GIVES("nn.LSTMCell(3, 2)") {
  const LstmCellState after = lstm_cell(x[0], {x[1], x[2]}, layer(x, 3));
  return Tensors{after.hidden, after.cell};
}

}  // namespace ebb::tests::parity
