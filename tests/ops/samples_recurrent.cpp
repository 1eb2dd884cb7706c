#include <cmath>

#include "ebb/core/kernels/philox.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kIn = 2, kHidden = 3;

struct Stack {
  int layers;
  bool state, dropout, lengths = false;
  RecurrentCell cell = RecurrentCell::lstm;

  bool is_lstm() const { return cell == RecurrentCell::lstm; }
};

std::vector<SampleInput> inputs_of(const Stack& stack) {
  std::vector<SampleInput> inputs = {{{kOpen, 4, kIn}}};
  if (stack.state) inputs.resize(stack.is_lstm() ? 3 : 2, {{stack.layers, kOpen, kHidden}});
  if (stack.dropout) inputs.push_back({{2}, Values::draw});
  if (stack.lengths) inputs.push_back({{kOpen}, Values::long_labels});  // 0 to 4
  for (int layer = 0; layer < stack.layers; ++layer) {
    const std::int64_t columns = (stack.is_lstm() ? 4 : 3) * kHidden;
    inputs.push_back({{layer ? kHidden : kIn, columns}});
    inputs.push_back({{kHidden, columns}});
    inputs.push_back({{4 * kHidden}});
  }
  return inputs;
}

Tensors run(const Stack& stack, const Tensors& in) {
  const RecurrentAttributes attributes{.layers = stack.layers,
                                       .hidden = kHidden,
                                       .has_state = stack.state,
                                       .dropout = stack.dropout ? 0.3 : 0,
                                       .has_lengths = stack.lengths,
                                       .cell = stack.cell};
  const InlineVector<Input, 16> inputs(in.begin(), in.end());
  const OpDef& op = stack.is_lstm() ? lstm_op : gru_op;
  const Tensors all = apply(op, {inputs.data(), inputs.size()}, attributes, {});
  return Tensors(all.begin(), all.end() - 1);  // drops the reserve
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Positions of a stack's inputs.
struct Places {
  explicit Places(const RecurrentAttributes& attributes) {
    if (attributes.has_state) weights += attributes.has_cell() ? 2 : 1;
    if (attributes.dropout > 0) draw = weights++;
    if (attributes.has_lengths) lengths = weights++;
    end = weights + 3 * static_cast<std::size_t>(attributes.layers);
  }
  std::size_t weights = 1, draw = 0, lengths = 0, end;  // 0: none
};

// Drops out the sequence of the layer below before a layer reads it.
void drop_out(Array& sequence, const Array& draw, std::int64_t layer, double probability) {
  for (std::int64_t i = 0; i < sequence.elements(); ++i) {
    const auto place = static_cast<std::uint64_t>(layer) << 40 | static_cast<std::uint64_t>(i);
    const std::uint32_t word = Philox::word(static_cast<std::uint64_t>(draw[0]),
                                            static_cast<std::uint64_t>(draw[1]), place);
    const bool dropped = static_cast<double>(word >> 8) / 16'777'216 < probability;
    sequence[i] = dropped ? 0 : sequence[i] / (1 - probability);
  }
}

// Advances h and c by one step. x and s are the products x W and h R with the gates side by side.
void lstm_step(const std::vector<double>& x, const std::vector<double>& s,
               const std::vector<double>& bias, std::vector<double>& h, std::vector<double>& c) {
  const std::size_t n = h.size();
  const auto a = [&](std::size_t gate, std::size_t j) {
    return x[gate * n + j] + s[gate * n + j] + bias[gate * n + j];
  };
  for (std::size_t j = 0; j < n; ++j) {
    c[j] = sigmoid(a(1, j)) * c[j] + sigmoid(a(0, j)) * std::tanh(a(2, j));
    h[j] = sigmoid(a(3, j)) * std::tanh(c[j]);
  }
}
void gru_step(const std::vector<double>& x, const std::vector<double>& s,
              const std::vector<double>& bias, std::vector<double>& h) {
  const std::size_t n = h.size();
  for (std::size_t j = 0; j < n; ++j) {
    const double reset = sigmoid(x[j] + s[j] + bias[j]);
    const double update = sigmoid(x[n + j] + s[n + j] + bias[n + j]);
    const double candidate =
        std::tanh(x[2 * n + j] + bias[2 * n + j] + reset * (s[2 * n + j] + bias[3 * n + j]));
    h[j] = (1 - update) * candidate + update * h[j];
  }
}

// Returns the sequence, the last hidden state and, for an LSTM, the last cell.
Arrays forward(const Arrays& in, const RecurrentAttributes& attributes) {
  const Places places(attributes);
  const std::int64_t batch = in[0].shape[0], time = in[0].shape[1], hidden = attributes.hidden;
  const std::int64_t columns = (attributes.has_cell() ? 4 : 3) * hidden;
  Array below = in[0], last_h({attributes.layers, batch, hidden}), last_c = last_h;
  for (std::int64_t layer = 0; layer < attributes.layers; ++layer) {
    const std::size_t first = places.weights + 3 * static_cast<std::size_t>(layer);
    const Array &w = in[first], &r = in[first + 1], &bias = in[first + 2];
    if (layer > 0 && places.draw) drop_out(below, in[places.draw], layer, attributes.dropout);
    const std::int64_t width = below.shape[2];
    Array above({batch, time, hidden});
    for (std::int64_t row = 0; row < batch; ++row) {
      const std::int64_t state = (layer * batch + row) * hidden;
      std::vector<double> h(static_cast<std::size_t>(hidden)), c = h;
      for (std::size_t j = 0; attributes.has_state && j < h.size(); ++j) {
        h[j] = in[1][state + static_cast<std::int64_t>(j)];
        if (attributes.has_cell()) c[j] = in[2][state + static_cast<std::int64_t>(j)];
      }
      const std::int64_t steps =
          places.lengths ? static_cast<std::int64_t>(in[places.lengths][row]) : time;
      for (std::int64_t t = 0; t < steps; ++t) {
        std::vector<double> by_x(static_cast<std::size_t>(columns)), by_h = by_x;
        for (std::size_t column = 0; column < by_x.size(); ++column) {
          const auto at = static_cast<std::int64_t>(column);
          for (std::int64_t i = 0; i < width; ++i)
            by_x[column] += below[(row * time + t) * width + i] * w[i * columns + at];
          for (std::size_t i = 0; i < h.size(); ++i)
            by_h[column] += h[i] * r[static_cast<std::int64_t>(i) * columns + at];
        }
        if (attributes.has_cell()) {
          lstm_step(by_x, by_h, bias.values, h, c);
        } else {
          gru_step(by_x, by_h, bias.values, h);
        }
        for (std::size_t j = 0; j < h.size(); ++j)
          above[(row * time + t) * hidden + static_cast<std::int64_t>(j)] = h[j];
      }
      for (std::size_t j = 0; j < h.size(); ++j) {
        last_h[state + static_cast<std::int64_t>(j)] = h[j];
        last_c[state + static_cast<std::int64_t>(j)] = c[j];
      }
    }
    below = above;
  }
  if (!attributes.has_cell()) return {below, last_h};
  return {below, last_h, last_c};
}

// Central differences of a loss: the sum of the outputs, each times its given gradient.
Arrays backward(const Application& application) {
  const auto& attributes = application.attribute<RecurrentAttributes>();
  const Places places(attributes);
  const auto first = application.inputs.begin() + kRecurrentBackwardX;
  Arrays in(first, first + static_cast<std::ptrdiff_t>(places.end));
  const auto loss = [&] {
    const Arrays outputs = forward(in, attributes);
    std::size_t given = kRecurrentBackwardX + places.end;
    double total = 0;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!(attributes.d_given >> k & 1)) continue;
      const Array& dy = application[given++];
      for (std::int64_t i = 0; i < dy.elements(); ++i) total += dy[i] * outputs[k][i];
    }
    return total;
  };
  Arrays gradients;
  for (std::size_t input = 0; input < in.size(); ++input) {
    if (input > 0 && (input == places.draw || input == places.lengths)) continue;
    Array& gradient = gradients.emplace_back(in[input].shape);
    for (std::int64_t i = 0; i < gradient.elements(); ++i) {
      constexpr double kStep = 1e-5;
      const double x = in[input][i];
      in[input][i] = x + kStep;
      const double above = loss();
      in[input][i] = x - kStep;
      gradient[i] = (above - loss()) / (2 * kStep);
      in[input][i] = x;
    }
  }
  return gradients;
}

}  // namespace

void recurrent_family(std::vector<Sample>& samples, References& references, DType dtype) {
  std::vector<Stack> stacks = {Stack{1, false, false}, Stack{2, true, true, true}};
  if (!is_half(dtype))
    stacks = {stacks[0],
              Stack{2, true, false},
              Stack{3, true, true},
              Stack{12, true, true},
              Stack{1, false, false, true},
              Stack{2, true, true, true}};
  const std::vector<Stack> of_lstm = stacks;
  for (Stack stack : of_lstm) {
    stack.cell = RecurrentCell::gru;
    if (stack.layers < 12) stacks.push_back(stack);
  }
  for (const Stack& stack : stacks) {
    const std::string how = std::to_string(stack.layers) + " layers" +
                            (stack.state ? ", given state" : "") +
                            (stack.dropout ? ", dropout" : "") + (stack.lengths ? ", lengths" : "");
    samples.push_back(sample_of(
        stack.is_lstm() ? lstm_op : gru_op, how, inputs_of(stack),
        [stack](const Tensors& in) { return run(stack, in); }, 1));
    // Samples of the gradient operator, one for each output whose gradient arrives. Deep stacks try
    // the sequence alone, since their reference takes long.
    const int arriving = stack.layers == 12 ? 1 : stack.is_lstm() ? 3 : 2;
    for (int given = 0; given < arriving; ++given) {
      const auto backward = [stack, given](const Tensors& in) {
        const auto output = static_cast<std::size_t>(given);
        Tensors inputs = in, wanted;
        for (Tensor& tensor : inputs) {
          if (!is_floating(tensor.dtype())) continue;
          if (!tensor.is_symbolic()) tensor = tensor.with_grad();
          wanted.push_back(tensor);
        }
        return gradients(sum(square(run(stack, inputs)[output])), wanted);
      };
      samples.push_back(moving_sample(stack.is_lstm() ? lstm_backward_op : gru_backward_op,
                                      how + ", of output " + std::to_string(given),
                                      inputs_of(stack), backward, true));
      samples.back().order = kNoGradient;
    }
  }

  const auto run = [](const Application& a) {
    return forward(a.inputs, a.attribute<RecurrentAttributes>());
  };
  // In 16 bits a GPU rounds the hidden state and the gates of each step. Backward is given the
  // rounded gates and the rounded sequence.
  for (const auto& [op, gradient] :
       {std::pair{&lstm_op, &lstm_backward_op}, std::pair{&gru_op, &gru_backward_op}}) {
    references.add(*op, run).roundings = 3;
    // A GRU also rounds q = h R_n + b_q. In f32, with weights this large, two layers and a batch of
    // 17, one of its gradients is off by 7e-6. Cancellation in 1 - n^2 near |n| = 1 is not the
    // cause: (1 - n) (1 + n) gives the same digits. In f64 the error is within 1e-7, as for an
    // LSTM.
    const bool is_lstm = op == &lstm_op;
    Reference& of_gradient = references.add(*gradient, backward);
    of_gradient.error = is_lstm ? 1e-7 : 3e-6;
    of_gradient.roundings = is_lstm ? 8 : 12;
  }
}

}  // namespace ebb::tests
