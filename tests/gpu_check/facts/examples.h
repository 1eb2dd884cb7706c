// The layers of the examples, at the batch that each is trained with.
#pragma once
#include <cstdint>

namespace ebb::facts {

struct DenseLayer {
  const char* example;
  std::int64_t rows, in, out;
  bool relu;
};
inline constexpr DenseLayer kDenseLayers[] = {
    {"train_mlp", 32, 64, 128, true},           {"train_mlp", 32, 128, 10, false},
    {"digits_cnn", 32, 512, 64, true},          {"digits_cnn", 32, 64, 10, false},
    {"digits_vae", 32, 64, 128, true},          {"digits_vae", 32, 128, 16, false},
    {"digits_vae", 32, 8, 128, true},           {"digits_vae", 32, 128, 64, false},
    {"text_transformer", 1024, 64, 64, false},  {"text_transformer", 1024, 64, 256, true},
    {"text_transformer", 1024, 256, 64, false}, {"text_transformer", 1024, 64, 72, false},
    {"text_lstm", 768, 192, 72, false},         {"train_lstm", 64, 64, 1, false},
    {"forecast_year", 64, 32, 12, false},
};

struct LstmStack {
  const char* example;
  std::int64_t batch, time, in;
  std::int32_t hidden, layers;
};
inline constexpr LstmStack kLstmStacks[] = {
    {"train_lstm", 64, 48, 1, 64, 2},
    {"forecast_year", 64, 132, 1, 32, 1},
    {"text_lstm", 16, 48, 48, 192, 1},
};

struct ConvLayer {
  const char* example;
  std::int64_t images, channels, size, filters, kernel, stride, padding;
};
inline constexpr ConvLayer kConvLayers[] = {
    {"digits_cnn", 32, 1, 8, 16, 3, 1, 1},   {"digits_cnn", 32, 16, 8, 32, 3, 1, 1},
    {"resnet18", 32, 3, 224, 64, 7, 2, 3},   {"resnet18", 32, 64, 56, 64, 3, 1, 1},
    {"resnet18", 32, 128, 28, 256, 3, 2, 1}, {"resnet18", 32, 128, 28, 256, 1, 2, 0},
    {"resnet18", 32, 512, 7, 512, 3, 1, 1},
};

}  // namespace ebb::facts
