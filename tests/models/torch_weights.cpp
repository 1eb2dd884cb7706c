// Weights that PyTorch trained (tests/golden/make_torch_weights.py) compute the same results here.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

struct Model {
  models::Lstm lstm;
  models::Mlp head;
  explicit Model(const Parameters& params)
      : lstm(params.scope("lstm"), 6, {.hidden = 5, .layers = 2}),
        head(params.scope("head"), {5, 4, 3}) {}
};

const std::vector<TorchRule> kRules = {{"encoder.lstm", "lstm"},
                                       {"fc.0", "head.0", TorchLayer::linear},
                                       {"fc.2", "head.1", TorchLayer::linear}};

}  // namespace

TEST_CASE("weights of PyTorch's LSTM and Linear compute what they computed there, in both modes") {
  const Golden golden("torch_weights");
  const Tensor x = golden["expected.x"];
  {
    Parameters params(Device::best());
    const Model model(params);
    load_torch(params, golden.path(), kRules);
    const models::LstmOutput out = model.lstm(x.to(params.device()));
    CHECK(distance(out.sequence, golden["expected.sequence"]) < 1e-6);
    const Tensor last = golden["expected.sequence"].to(params.device());
    CHECK(distance(model.head(select(last, 1, -1)), golden["expected.scores"]) < 1e-6);
  }
  Graph graph;
  Parameters params(graph);
  const Model model(params);
  const Tensor in = graph.placeholder("x", DType::f32, {-1, 7, 6});
  const Tensor sequence = model.lstm(in).sequence;
  const Tensor scores = model.head(select(sequence, 1, -1));
  Session session(graph, {.device = Device::best()});
  session.load_torch(params, golden.path(), kRules);
  CHECK(distance(session.run(sequence, {{in, x}}), golden["expected.sequence"]) < 1e-6);
  CHECK(distance(session.run(scores, {{in, x}}), golden["expected.scores"]) < 1e-6);
  CHECK_ERROR(load_torch(params, golden.path(), kRules), Error, "session.load_torch() takes them");
  const Parameters eager(Device::cpu());
  const Model other(eager);
  CHECK_ERROR(session.load_torch(eager, golden.path(), kRules), Error,
              "takes a variable of this session's graph");
}

TEST_CASE("weights of PyTorch's GRU, both ways, compute what they computed there") {
  const Golden golden("torch_weights");
  Parameters params(Device::best());
  const models::Gru gru(params.scope("own"), 6, {.hidden = 5, .layers = 2, .bidirectional = true});
  load_torch(params, golden.path(), {{"gru", "own"}});
  const Tensor x = golden["expected.x"].to(params.device());
  CHECK(distance(gru(x).sequence, golden["expected.gru"]) < 1e-6);

  Parameters others(Device::cpu());
  const models::Gru one_way(others, 6, {.hidden = 5, .layers = 2});
  CHECK_ERROR(load_torch(others, golden.path(), {{"gru", ""}}), FileError,
              "\"1.input\" f32[5, 15] cannot be \"gru.weight_ih_l1\" f32[15, 10] transposed");
  CHECK_ERROR(load_torch(others, golden.path(), {{"encoder.lstm", ""}}), FileError,
              "\"0.input\" f32[6, 15] cannot be \"encoder.lstm.weight_ih_l0\" f32[20, 6]");
}

TEST_CASE("the two biases of PyTorch's LSTM and GRU are two here, where two are there") {
  const Golden golden("torch_weights");
  Parameters params(Device::best());
  const models::Lstm lstm(params.scope("lstm"), 6,
                          {.hidden = 5, .layers = 2, .recurrent_bias = true});
  const models::Gru gru(params.scope("gru"), 6,
                        {.hidden = 5, .layers = 2, .bidirectional = true, .recurrent_bias = true});
  const double widest = max(abs(params["gru.1.reverse.recurrent_bias"])).item<float>();
  CHECK((widest > 0.1 && widest <= 1 / std::sqrt(5.)));  // as PyTorch's start
  load_torch(params, golden.path(), {{"encoder.lstm", "lstm"}, {"gru", "gru"}});
  for (const auto& [here, there] : {std::pair{"lstm.1.bias", "encoder.lstm.bias_ih_l1"},
                                    std::pair{"lstm.1.recurrent_bias", "encoder.lstm.bias_hh_l1"},
                                    std::pair{"gru.0.reverse.bias", "gru.bias_ih_l0_reverse"}})
    CHECK(bit_equal(params[here].to(Device::cpu()), golden[there]));
  const Tensor x = golden["expected.x"].to(params.device());
  CHECK(distance(lstm(x).sequence, golden["expected.sequence"]) < 1e-6);
  CHECK(distance(gru(x).sequence, golden["expected.gru"]) < 1e-6);
}

TEST_CASE("weights of PyTorch's are converted to the dtype of the parameters, a sum once") {
  const Golden golden("torch_weights");
  Parameters params(Device::cpu(), {}, DType::f64);
  const Model model(params);
  load_torch(params.scope("lstm"), golden.path(), {{"encoder.lstm", ""}});
  const std::vector<float> a = golden["encoder.lstm.bias_ih_l1"].to_vector<float>();
  const std::vector<float> b = golden["encoder.lstm.bias_hh_l1"].to_vector<float>();
  const std::vector<double> sum = params["lstm.1.bias"].to_vector<double>();
  for (std::size_t i = 0; i < sum.size(); ++i)
    CHECK(sum[i] == static_cast<double>(a[i]) + static_cast<double>(b[i]));
  CHECK(params["lstm.0.input"].item<double>({2, 19}) ==
        static_cast<double>(golden["encoder.lstm.weight_ih_l0"].item<float>({19, 2})));

  Parameters halves(Device::cpu(), {}, DType::bf16);
  models::Dense dense(halves, 2, 2);
  load_torch(halves, golden.path(), {{"half", "", TorchLayer::linear}});
  for (const std::int64_t i : {0, 1})
    for (const std::int64_t j : {0, 1})
      CHECK(halves["weight"].item<BFloat16>({i, j}).bits ==
            BFloat16(static_cast<float>(golden["half.weight"].item<double>({j, i}))).bits);
}

TEST_CASE("the rule of the longest scope counts, and of those the one with the fewest '*'") {
  const Golden golden("torch_weights");
  std::vector<TorchRule> rules = {{"fc", ""}, {"fc.*", "*"}, {"fc.0", "head"}, {"fc.2", "0"}};
  for (int i = 0; i < 2; ++i) {
    Parameters params(Device::cpu());
    const models::Dense first(params.scope("head"), 5, 4), second(params.scope("0"), 4, 3);
    load_torch(params, golden.path(), rules);
    CHECK(bit_equal(params["head.weight"], transpose(golden["fc.0.weight"])));
    CHECK(bit_equal(params["0.weight"], transpose(golden["fc.2.weight"])));
    std::ranges::reverse(rules);
  }
}

TEST_CASE("a '*' of a rule is the same text on both sides, without dots") {
  const TemporaryFolder folder;
  const std::string file = folder.path("weights.safetensors");
  const Tensor w[] = {normal({2, 2}), normal({2, 2}), normal({2, 2})}, token = normal({1, 2});
  save_safetensors(file, {{"h.0.ln_1.weight", w[0]},
                          {"h.10.ln_2.weight", w[1]},
                          {"h.10.fc.weight", w[2]},
                          {"h.10.fc.own", w[2]},
                          {"h.10.other.fc.weight", w[2]},
                          {"cls_token", token}});
  const Parameters params(Device::cpu());
  for (const char* name :
       {"block.0.norm_1.scale", "block.10.norm_2.scale", "block.10.out.weight", "block.10.out.own"})
    params.declare(name, {2, 2}, initializers::zeros());
  params.declare("token", {2, 1}, initializers::zeros());
  const auto load = [&](const TorchRule& more) {
    load_torch(params, file,
               {{"h.*.ln_*", "block.*.norm_*"},
                {"h.*.fc", "block.*.out", TorchLayer::linear},
                {"cls_token", "token", TorchLayer::linear},
                more});
  };
  load({"none", "none"});
  CHECK(bit_equal(params["block.0.norm_1.scale"], w[0]));
  CHECK(bit_equal(params["block.10.norm_2.scale"], w[1]));
  CHECK(bit_equal(params["block.10.out.weight"], transpose(w[2])));
  CHECK(bit_equal(params["block.10.out.own"], w[2]));
  CHECK(bit_equal(params["token"], transpose(token)));
  CHECK_ERROR(load({"a.*", "b"}), Error,
              "the rule from \"a.*\" to \"b\" has another number of '*' on either side");
}

TEST_CASE(
    "queries, keys and values of PyTorch's are found side by side or apart, for either here") {
  const TemporaryFolder folder;
  const Tensor w = normal({2, 6}), b = normal({6});
  const std::string columns = folder.path("conv1d"), rows = folder.path("linear"),
                    apart = folder.path("apart"), two = folder.path("two");
  save_safetensors(columns, {{"a.c_attn.weight", w}, {"a.c_attn.bias", b}});
  save_safetensors(rows, {{"a.c_attn.weight", transpose(w)}, {"a.c_attn.bias", b}});
  std::map<std::string, Tensor> thirds;
  const char* const names[] = {"query", "key", "value"};
  for (int i = 0; i < 3; ++i) {
    const auto third = [&](const Tensor& x) { return slice(x, 2 * i, 2 * i + 2, {.axis = -1}); };
    thirds.emplace(std::string("a.") + names[i] + ".weight", transpose(third(w)));
    thirds.emplace(std::string("a.") + names[i] + ".bias", third(b));
  }
  save_safetensors(apart, thirds);
  save_safetensors(two, {*thirds.find("a.query.weight"), *thirds.find("a.key.weight")});
  const Parameters fused(Device::cpu()), separate(Device::cpu());
  fused.declare("b.qkv.weight", {2, 6}, initializers::zeros());
  fused.declare("b.qkv.bias", {6}, initializers::zeros());
  for (const std::string name : names) {
    separate.declare("b." + name + ".weight", {2, 2}, initializers::zeros());
    separate.declare("b." + name + ".bias", {2}, initializers::zeros());
  }
  CHECK_ERROR(load_torch(fused, two, {{"a", "b", TorchLayer::linear}}), FileError,
              "\"b.qkv.weight\" f32[2, 6] has no \"a.qkv.weight\" or \"a.in_proj_weight\" or "
              "\"a.value.weight\"");
  CHECK_ERROR(
      load_torch(separate, apart, {{"a", "b"}}), FileError,
      "\"b.query.weight\" f32[2, 2] is \"a.query.weight\" f32[2, 2] or that transposed, so its "
      "rule must say TorchLayer::linear or unchanged");
  for (const auto& [file, rule] : {std::pair{columns, TorchRule{"a.c_attn", "b.qkv"}},
                                   std::pair{rows, TorchRule{"a.c_attn", "b.qkv"}},
                                   std::pair{apart, TorchRule{"a", "b", TorchLayer::linear}}}) {
    for (const Parameters& params : {fused, separate}) load_torch(params, file, {rule});
    CHECK(bit_equal(fused["b.qkv.weight"], w));
    CHECK(bit_equal(fused["b.qkv.bias"], b));
    for (const auto& [name, value] : thirds) {
      const Tensor here = separate["b" + name.substr(1)];
      CHECK(bit_equal(here.rank() == 2 ? transpose(here) : here, value));
    }
    for (const Parameters& params : {fused, separate})
      for (const auto& [name, tensor] : params.entries()) tensor.impl()->storage->fill(0);
  }
}

TEST_CASE("a tied head of PyTorch's is read from whichever name the file has, or from equal ones") {
  const TemporaryFolder folder;
  const std::string file = folder.path("tied.safetensors");
  const std::vector<TorchRule> rules = {{"wte", "token"}, {"lm_head", "token"}, {"first", "first"}};
  const Tensor table = normal({3, 2}), other = normal({3, 2});
  const Parameters params(Device::cpu()), twin(Device::cpu().twin());
  for (const char* name : {"first.weight", "token.weight"})
    for (const Parameters& each : {params, twin}) each.declare(name, {3, 2}, initializers::zeros());
  const auto loads = [&](std::map<std::string, Tensor> tensors) {
    tensors.emplace("first.weight", other);
    save_safetensors(file, tensors);
    params["first.weight"].impl()->storage->fill(0);
    load_torch(params, file, rules);
    const bool equal = bit_equal(params["token.weight"], table);
    params["token.weight"].impl()->storage->fill(0);
    return equal;
  };
  CHECK(loads({{"wte.weight", table}}));
  CHECK(loads({{"lm_head.weight", table}}));
  CHECK(loads({{"lm_head.weight", table}, {"wte.weight", table}}));
  CHECK_ERROR(loads({{"lm_head.weight", other}, {"wte.weight", table}}), FileError,
              "\"token.weight\" is \"wte.weight\" f32[3, 2], tied to \"lm_head.weight\" f32[3, 2], "
              "whose values differ");
  CHECK_NOTHROW(load_torch(twin, file, rules));  // which has no values that could differ
  for (const char* name : {"first.weight", "token.weight"})
    CHECK(params[name].to_vector<float>() == std::vector<float>(6, 0));
}

TEST_CASE("the mapping of PyTorch's weights is told for rules that do not fit yet, line by line") {
  const TemporaryFolder folder;
  const std::string file = folder.path("weights.safetensors");
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape); };
  save_safetensors(file, {{"rnn.weight_ih_l0", zeros({4, 2})},
                          {"rnn.weight_hh_l0", zeros({4, 1})},
                          {"rnn.bias_ih_l0", zeros({4})},
                          {"rnn.bias_hh_l0", zeros({4})},
                          {"rnn.weight_hr_l0", zeros({1, 1})},
                          {"h.0.c_attn.weight", zeros({2, 6})},
                          {"h.0.mask", zeros({1})},
                          {"h.0.deep.mask", zeros({1})},
                          {"h..mask", zeros({1})},
                          {"head.weight", zeros({3, 2})},
                          {"other", zeros({1})}});
  const Parameters params(Device::cpu());
  const models::Lstm lstm(params.scope("lstm"), 2, 1);
  const models::Dense dense(params.scope("head"), 3, 2);
  params.declare("h.0.key.weight", {2, 2}, initializers::zeros());
  params.declare("h.0.key.bias", {2}, initializers::zeros());
  params.declare("h.0.norm.scale", {2}, initializers::zeros());
  for (const char* name : {"own", "lstm.shift", "lstm.x.bias"})
    params.declare(name, {1}, initializers::zeros());
  const std::vector<TorchRule> rules = {{"rnn", "lstm"},
                                        {"h.*.c_attn", "h.*.qkv"},
                                        {"h.*.ln", "h.*.norm"},
                                        {"h.*.mask", {}, TorchLayer::ignored},
                                        {"head.weight", "head.weight"}};
  const std::string mapping =
      R"(lstm.0.input f32[2, 4]     is "rnn.weight_ih_l0" f32[4, 2] transposed
lstm.0.recurrent f32[1, 4] is "rnn.weight_hh_l0" f32[4, 1] transposed
lstm.0.bias f32[4]         is "rnn.bias_ih_l0" f32[4] + "rnn.bias_hh_l0" f32[4]
head.weight f32[3, 2]      is "head.weight" f32[3, 2]
head.bias f32[2]           has no rule
h.0.key.weight f32[2, 2]   is a third of "h.0.c_attn.weight" f32[2, 6]
h.0.key.bias f32[2]        has no "h.0.c_attn.bias" and is zero
h.0.norm.scale f32[2]      has no "h.0.ln.scale" or "h.0.ln.weight"
own f32[1]                 has no rule
lstm.shift f32[1]          has no "rnn.shift" or "rnn.bias"
lstm.x.bias f32[1]         has no "rnn.x.bias"
)";
  CHECK(torch_mapping(params, file, rules) ==
        mapping +
            "left over: h..mask f32[1]\nleft over: h.0.deep.mask f32[1]\n"
            "left over: h.0.mask f32[1], ignored\nleft over: other f32[1]\n"
            "left over: rnn.weight_hr_l0 f32[1, 1], though a rule names it\n");
  CHECK_ERROR(
      load_torch(params, file, rules), FileError,
      "does not fit: \"head.bias\" f32[2] has no rule; \"h.0.norm.scale\" f32[2] has no "
      "\"h.0.ln.scale\" or \"h.0.ln.weight\"; \"own\" f32[1] has no rule; \"lstm.shift\" f32[1] "
      "has no \"rnn.shift\" or \"rnn.bias\"; \"lstm.x.bias\" f32[1] has no \"rnn.x.bias\"; "
      "\"rnn.weight_hr_l0\" f32[1, 1] in the file has no place here. The file has");
}

TEST_CASE("layers of PyTorch's without biases have biases of zero here, and thirds are thirds") {
  Parameters of_dense(Device::cpu());
  const models::Dense dense(of_dense, 4, 3);
  of_dense["bias"].impl()->storage->fill(1);
  load_torch(of_dense, Golden("torch_weights").path(), {{"fc.2", "", TorchLayer::linear}});
  CHECK(of_dense["bias"].to_vector<float>() == std::vector<float>(3, 0));
  const TemporaryFolder folder;
  const std::string file = folder.path("attention.safetensors");
  Parameters params(Device::cpu(), Seed{1});
  const models::MultiHeadAttention attention(params, 3);
  const models::GroupNorm norm(params.scope("norm"), 1, 3);
  const std::vector<TorchRule> rules = {{"a", ""}, {"n", "norm"}};
  const Tensor in = normal({9, 3}), out = normal({3, 3}), scale = normal({3});
  const char* const biases[] = {"query.bias", "key.bias", "value.bias", "output.bias",
                                "norm.shift"};
  for (const char* name : biases) params[name].impl()->storage->fill(1);
  save_safetensors(file, {{"a.in_proj_weight", in},
                          {"a.out_proj.weight", out},
                          {"n.weight", scale},
                          {"n.num_batches_tracked", Tensor::from({7})}});
  load_torch(params, file, rules);
  CHECK(bit_equal(params["value.weight"], transpose(slice(in, 6, 9))));
  CHECK(bit_equal(params["norm.scale"], scale));
  for (const char* name : biases)
    CHECK(params[name].to_vector<float>() == std::vector<float>(3, 0));
  save_safetensors(
      file,
      {{"a.in_proj_weight", normal({10, 3})}, {"a.out_proj.weight", out}, {"n.weight", scale}});
  CHECK_ERROR(load_torch(params, file, rules), FileError,
              "\"query.weight\" f32[3, 3] cannot be a third of \"a.in_proj_weight\" f32[10, 3]");
}

TEST_CASE(
    "weights of PyTorch's are new values: of what backward reads, of what failed, on a twin") {
  const Golden golden("torch_weights");
  const std::vector<TorchRule> rules = {{"fc.2", "", TorchLayer::linear}};
  Parameters params(Device::cpu());
  const models::Dense dense(params, 4, 3);
  const Tensor loss = sum(square(dense(Tensor::full({1, 4}, 1).with_grad())));
  params["weight"].impl()->storage->tear("half");
  load_torch(params, golden.path(), rules);
  CHECK(bit_equal(params["weight"], transpose(golden["fc.2.weight"])));
  CHECK_NOTHROW(params["weight"].to_vector<float>());
  CHECK_THROWS_AS(loss.backward(), Error);  // the load has replaced the weights that it reads
  auto step = compile([&](const Tensor& x) {
    load_torch(params, golden.path(), rules);
    return dense(x);
  });
  CHECK_ERROR(step(Tensor::zeros({1, 4})), Error,
              "[load_torch] uses a value while compile() traces");

  Parameters twin(Device::cpu().twin());
  const models::Dense same(twin, 4, 3);
  CHECK_NOTHROW(load_torch(twin, golden.path(), rules));
}

TEST_CASE("a GRU's bias of PyTorch's is read into four quarters, and nothing else") {
  const TemporaryFolder folder;
  const std::string file = folder.path("gru.safetensors");
  save_safetensors(file, {{"bias_ih_l0", Tensor::from({1.f, 2.f, 3.f})},
                          {"bias_hh_l0", Tensor::from({10.f, 20.f, 30.f})}});
  const Parameters params(Device::cpu()), longer(Device::cpu());
  params.declare("0.bias", {4}, initializers::zeros());
  load_torch(params, file, {{"", ""}});
  CHECK(params["0.bias"].to_vector<float>() == std::vector<float>{11, 22, 3, 30});
  CHECK(torch_mapping(params, file, {{"", ""}}) ==
        "0.bias f32[4] is \"bias_ih_l0\" f32[3] + \"bias_hh_l0\" f32[3]\n");
  longer.declare("0.bias", {5}, initializers::zeros());
  CHECK_ERROR(load_torch(longer, file, {{"", ""}}), FileError,
              "\"0.bias\" f32[5] cannot be \"bias_ih_l0\" f32[3] + \"bias_hh_l0\" f32[3]");
}

TEST_CASE("a sum of PyTorch's biases that are -0 is -0") {
  const TemporaryFolder folder;
  const std::string file = folder.path("lstm.safetensors");
  const Tensor none = Tensor::full({4}, -0.0);
  save_safetensors(file, {{"weight_ih_l0", Tensor::full({4, 1}, -0.0)},
                          {"weight_hh_l0", Tensor::zeros({4, 1})},
                          {"bias_ih_l0", none},
                          {"bias_hh_l0", none}});
  Parameters params(Device::cpu());
  const models::Lstm lstm(params, 1, {.hidden = 1});
  load_torch(params, file, {{"", ""}});
  CHECK(bit_equal(params["0.bias"], none));
  CHECK(bit_equal(params["0.input"], Tensor::full({1, 4}, -0.0)));
}

TEST_CASE("weights of PyTorch's norms, attention and LSTM both ways compute what they did there") {
  const Golden golden("torch_weights");
  Parameters params(Device::best());
  const models::BatchNorm batch(params.scope("batch"), 4);
  const models::LayerNorm layer(params.scope("layer"), 6);
  const models::MultiHeadAttention attention(params.scope("attention"), 6, {.heads = 2});
  const models::Lstm lstm(params.scope("lstm"), 6,
                          {.hidden = 3, .layers = 2, .bidirectional = true});
  load_torch(params, golden.path(),
             {{"norm", "batch"},
              {"block.norm", "layer"},
              {"block.attention", "attention"},
              {"block.lstm", "lstm"}});
  CHECK(bit_equal(params["batch.running_variance"].to(Device::cpu()), golden["norm.running_var"]));
  const auto here = [&](const char* name) { return golden[name].to(params.device()); };
  CHECK(distance(batch(here("expected.x4")), golden["expected.batch_norm"]) < 1e-6);
  CHECK(distance(layer(here("expected.x")), golden["expected.layer_norm"]) < 1e-6);
  CHECK(distance(attention(here("expected.layer_norm")), golden["expected.attention"]) < 1e-6);
  CHECK(distance(lstm(here("expected.attention")).sequence, golden["expected.both_ways"]) < 1e-6);

  Parameters other(Device::cpu());
  const models::MultiHeadAttention wider(other, 8, {.heads = 2});
  CHECK_ERROR(load_torch(other, golden.path(), {{"block.attention", ""}}), FileError,
              "\"key.weight\" f32[8, 8] cannot be a third of \"block.attention.in_proj_weight\" "
              "f32[18, 6] transposed");
}

TEST_CASE("weights of PyTorch's of other ranks and dtypes are refused, of no element taken") {
  const TemporaryFolder folder;
  const std::string file = folder.path("weights.safetensors");
  const std::vector<TorchRule> rules = {{"a", "", TorchLayer::linear}};
  const Parameters params(Device::cpu());
  params.declare("weight", {2, 2}, initializers::zeros());
  save_safetensors(file, {{"a.weight", Tensor::zeros({2, 2, 1})}});
  CHECK_ERROR(load_torch(params, file, rules), FileError, "cannot be \"a.weight\" f32[2, 2, 1]");
  save_safetensors(file, {{"a.weight", Tensor::from({{1, 2}, {3, 4}})}});
  CHECK_ERROR(load_torch(params, file, rules), FileError, "i32[2, 2] transposed");
  const Parameters counts(Device::cpu());
  counts.state("weight", {2, 2}, initializers::zeros(), DType::i32);
  CHECK_ERROR(load_torch(counts, file, rules), FileError, "i32[2, 2] transposed");
  counts.state("query.bias", {2}, initializers::zeros(), DType::i32);
  save_safetensors(file, {{"a.in_proj_bias", Tensor::from({1, 2, 3, 4, 5, 6})}});
  CHECK_ERROR(load_torch(counts, file, {{"a", ""}}), FileError,
              "\"query.bias\" i32[2] cannot be a third of \"a.in_proj_bias\" i32[6]");
  counts.state("0.bias", {2}, initializers::zeros(), DType::i32);
  save_safetensors(
      file, {{"a.bias_ih_l0", Tensor::from({1, 2})}, {"a.bias_hh_l0", Tensor::from({1, 2})}});
  CHECK_ERROR(load_torch(counts, file, {{"a", ""}}), FileError,
              "\"0.bias\" i32[2] cannot be \"a.bias_ih_l0\" i32[2] + \"a.bias_hh_l0\" i32[2]");

  const Parameters lstm(Device::cpu());
  lstm.declare("0.input", {2, 4}, initializers::zeros());
  save_safetensors(file, {{"a.weight_ih_l0", Tensor::zeros({4, 2, 1})}});
  CHECK_ERROR(load_torch(lstm, file, {{"a", ""}}), FileError, "f32[4, 2, 1] transposed");
  const Parameters wide(Device::cpu());
  wide.declare("query.weight", {2, 6}, initializers::zeros());
  save_safetensors(file, {{"a.qkv.weight", Tensor::zeros({2, 6})}});
  CHECK_ERROR(load_torch(wide, file, {{"a", ""}}), FileError, "cannot be a third of");

  // The prefix "a" does not match "ab".
  const Parameters empty(Device::cpu());
  empty.declare("weight", {3, 0}, initializers::zeros());
  save_safetensors(file, {{"a.weight", Tensor::zeros({0, 3})}, {"ab.bias", Tensor::zeros({3})}});
  CHECK_NOTHROW(load_torch(empty, file, rules));
}

TEST_CASE("a message about weights of PyTorch's lists twelve that do not fit, and how many more") {
  const Golden golden("torch_weights");
  const Parameters params(Device::cpu());
  for (int i = 0; i < 14; ++i) {
    params.declare("w" + std::to_string(i), {1}, initializers::zeros());
    if (i < 11) continue;
    const std::string text = why_not_thrown<FileError>(
        [&] {
          load_torch(params, golden.path(), {{"none", "none"}});
        },
        i == 11 ? "w11\" f32[1] has no rule. The file has"
                : "has no rule; and " + std::to_string(i - 11) + " more. The file has");
    CHECK(text == "");
  }
}

TEST_CASE("what keeps its layout keeps its values, running statistics among them") {
  const Golden golden("torch_weights");
  Parameters params(Device::cpu());
  params.declare("table.weight", {8, 2}, initializers::zeros());
  for (const char* name : {"weight", "bias"})
    params.scope("norm").declare(name, {4}, initializers::zeros());
  for (const char* name : {"running_mean", "running_var"}) params.scope("norm").state(name, {4});
  params.declare("conv.weight", {3, 2, 5}, initializers::zeros());
  params.declare("conv.bias", {3}, initializers::zeros());
  load_torch(params, golden.path(), {{"embedding", "table"}, {"norm", "norm"}, {"conv", "conv"}});
  CHECK(bit_equal(params["table.weight"], golden["embedding.weight"]));
  for (const char* name : {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
                           "conv.weight", "conv.bias"})
    CHECK(bit_equal(params[name], golden[name]));
}

TEST_CASE("what is neither converted nor transposed is the file's bit for bit, NaN too") {
  const TemporaryFolder folder;
  const std::string file = folder.path("weights.safetensors");
  const std::vector<std::uint32_t> bits = {0x7F800001, 0xFFA00000, 0x80000000, 1};
  std::vector<float> values(bits.size());
  std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  save_safetensors(file, {{"weight", Tensor::from(values)}});
  const Parameters params(Device::cpu());
  const Tensor weight = params.declare("weight", {4}, initializers::zeros());
  load_torch(params, file, {{}});
  const std::vector<std::byte> here = bytes_of(weight);
  CHECK(std::memcmp(here.data(), bits.data(), here.size()) == 0);

  const Parameters halves(Device::cpu(), {}, DType::bf16);  // as many bytes, of other numbers
  halves.declare("weight", {4}, initializers::zeros());
  save_safetensors(file, {{"weight", Tensor::full({4}, 3, DType::f16)}});
  load_torch(halves, file, {{}});
  CHECK(cast(halves["weight"], DType::f32).to_vector<float>() == std::vector<float>(4, 3));
  const auto step = compile([&](const Tensor& x) {
    load_torch(params, file, {{}});
    return x + 1;
  });
  CHECK_ERROR(step(weight), Error, "while compile() traces");
}

TEST_CASE("weights that do not fit change nothing, and the message lists both sides") {
  const Golden golden("torch_weights");
  const TemporaryFolder folder;
  Parameters params(Device::cpu(), Seed{1});
  const Model model(params);
  std::vector<std::vector<std::byte>> before;
  for (const auto& entry : params.entries()) before.push_back(bytes_of(entry.tensor));
  const auto refuses = [&](const Parameters& into, const std::vector<TorchRule>& rules,
                           const std::string& why) {
    const int run = __LINE__ + 1;
    CHECK_ERROR(load_torch(into, golden.path(), rules), FileError, why);
    CHECK_ERROR(load_torch(into, golden.path(), rules), FileError, line(run + 1));
  };
  refuses(params, {{"encoder.lstm", "lstm"}, {"fc.0", "head.0", TorchLayer::linear}},
          "\"head.1.weight\" f32[4, 3] has no rule; \"head.1.bias\" f32[3] has no rule. The");
  refuses(params.scope("head"),
          {{"fc.0", "0", TorchLayer::linear}, {"fc.1", "1", TorchLayer::linear}},
          "\"1.weight\" f32[4, 3] has no \"fc.1.weight\"; \"1.bias\" f32[3] has no \"fc.1.bias\". "
          "The file has \"fc.");
  refuses(params.scope("head"),
          {{"fc.2", "0", TorchLayer::linear}, {"fc.0", "1", TorchLayer::linear}},
          "\"0.weight\" f32[5, 4] cannot be \"fc.2.weight\" f32[3, 4] transposed; \"1.weight\"");
  refuses(params.scope("head"), {{"fc.0", "0", TorchLayer::unchanged}, {"fc.2", "1"}},
          "\"0.weight\" f32[5, 4] cannot be \"fc.0.weight\" f32[4, 5]. The file");
  Parameters one(Device::cpu());
  models::Lstm lstm(one, 6, {.hidden = 5});
  refuses(one, {{"encoder.lstm", ""}},
          "\"encoder.lstm.weight_ih_l1\" f32[20, 5] in the file has no place here");
  CHECK_ERROR(load_torch(params, folder.path("none"), kRules), FileError, "cannot be opened");
  CHECK_ERROR(load_torch(Parameters(Device::cpu()), golden.path(), kRules), Error,
              "there are no parameters");
  std::size_t i = 0;
  for (const auto& entry : params.entries()) CHECK(bytes_of(entry.tensor) == before[i++]);
}

TEST_CASE("Conv1d and RMSNorm of PyTorch's names are Conv1d and RmsNorm, in both modes") {
  const TemporaryFolder folder;
  const std::string file = folder.path("torch.safetensors");
  const Tensor w = normal({4, 1, 3}), b = normal({4}), scale = normal({6});
  save_safetensors(file, {{"conv.weight", w}, {"conv.bias", b}, {"norm.weight", scale}});
  const std::vector<TorchRule> rules = {{"conv", "c"}, {"norm", "n"}};
  const auto make = [](const Parameters& params) {
    const models::Conv1d conv(
        params.scope("c"), 2, 4,
        {.stride = 2, .padding = 2, .dilation = 2, .groups = 2, .activation = Activation::relu});
    const models::RmsNorm norm(params.scope("n"), {6}, 0.25);
    return [=](const Tensor& x) { return norm(conv(x)); };
  };
  const Tensor x = normal({3, 2, 12});
  const Tensor y = conv1d(x, w, b, {.stride = 2, .padding = 2, .dilation = 2, .groups = 2});
  const Tensor right = rms_norm(relu(y), scale, {.epsilon = 0.25});
  const Parameters params(Device::cpu(), Seed{1});
  const auto model = make(params);
  CHECK(bit_equal(params["n.scale"], Tensor::full({6}, 1)));
  load_torch(params, file, rules);
  CHECK(bit_equal(model(x), right));
  Graph graph;
  const Parameters symbolic(graph);
  const Tensor in = graph.placeholder("x", DType::f32, {-1, 2, 12}), out = make(symbolic)(in);
  Session session(graph, {.passes = false});
  session.initialize(symbolic);
  session.load_torch(symbolic, file, rules);
  CHECK(bit_equal(session.run(out, {{in, x}}), right));
  CHECK_ERROR(models::Conv1d(params, 2, 4, 0), Error, "[conv1d] kernel = 0 is below 1");
  CHECK_ERROR(models::RmsNorm(params, 0), Error, "[rms_norm] a size = 0 is below 1");
}

}  // namespace ebb::tests
