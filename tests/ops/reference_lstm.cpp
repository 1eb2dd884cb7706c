#include <cmath>

#include "ebb/core/kernels/philox.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Where a stack's inputs stand.
struct Places {
  explicit Places(const LstmAttributes& attributes) {
    if (attributes.has_state) weights += 2;
    if (attributes.dropout > 0) draw = weights++;
    if (attributes.has_lengths) lengths = weights++;
    end = weights + 3 * static_cast<std::size_t>(attributes.layers);
  }
  std::size_t weights = 1, draw = 0, lengths = 0, end;  // 0: none
};

// What a layer above the first reads of the one below it.
void drop_out(Array& sequence, const Array& draw, std::int64_t layer, double probability) {
  for (std::int64_t i = 0; i < sequence.elements(); ++i) {
    const auto place = static_cast<std::uint64_t>(layer) << 40 | static_cast<std::uint64_t>(i);
    const std::uint32_t word = Philox::word(static_cast<std::uint64_t>(draw[0]),
                                            static_cast<std::uint64_t>(draw[1]), place);
    const bool dropped = static_cast<double>(word >> 8) / 16'777'216 < probability;
    sequence[i] = dropped ? 0 : sequence[i] / (1 - probability);
  }
}

// Sequence, hidden, cell.
Arrays forward(const Arrays& in, const LstmAttributes& attributes) {
  const Places places(attributes);
  const std::int64_t batch = in[0].shape[0], time = in[0].shape[1], hidden = attributes.hidden;
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
        c[j] = in[2][state + static_cast<std::int64_t>(j)];
      }
      const std::int64_t steps =
          places.lengths ? static_cast<std::int64_t>(in[places.lengths][row]) : time;
      for (std::int64_t t = 0; t < steps; ++t) {
        // a = x_t W + h R + b, the gates i, f, g, o side by side.
        std::vector<double> a = bias.values;
        for (std::size_t column = 0; column < a.size(); ++column) {
          const auto at = static_cast<std::int64_t>(column);
          for (std::int64_t i = 0; i < width; ++i)
            a[column] += below[(row * time + t) * width + i] * w[i * 4 * hidden + at];
          for (std::size_t i = 0; i < h.size(); ++i)
            a[column] += h[i] * r[static_cast<std::int64_t>(i) * 4 * hidden + at];
        }
        const std::size_t n = h.size();
        for (std::size_t j = 0; j < n; ++j) {
          c[j] = sigmoid(a[n + j]) * c[j] + sigmoid(a[j]) * std::tanh(a[2 * n + j]);
          h[j] = sigmoid(a[3 * n + j]) * std::tanh(c[j]);
          above[(row * time + t) * hidden + static_cast<std::int64_t>(j)] = h[j];
        }
      }
      for (std::size_t j = 0; j < h.size(); ++j) {
        last_h[state + static_cast<std::int64_t>(j)] = h[j];
        last_c[state + static_cast<std::int64_t>(j)] = c[j];
      }
    }
    below = above;
  }
  return {below, last_h, last_c};
}

// Central differences of the sum of the given gradients times the outputs that they belong to.
Arrays backward(const Application& application) {
  const auto& attributes = application.attribute<LstmAttributes>();
  const Places places(attributes);
  const auto first = application.inputs.begin() + kLstmBackwardX;
  Arrays in(first, first + static_cast<std::ptrdiff_t>(places.end));
  const auto loss = [&] {
    const Arrays outputs = forward(in, attributes);
    std::size_t given = kLstmBackwardX + places.end;
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

void add_lstm_references(std::vector<Reference>& references) {
  references.push_back({&lstm_op, [](const Application& a) {
                          return forward(a.inputs, a.attribute<LstmAttributes>());
                        }});
  // A GPU rounds the hidden state and the gates of each step, and keeps such gates for backward,
  // which is given the sequence that has been rounded as well.
  references.back().roundings = 3;
  references.push_back({&lstm_backward_op, backward, 1e-7});
  references.back().roundings = 8;
}

}  // namespace ebb::tests
