// The public API, as its users meet it. This program compiles unchanged against an installed ebb
// and does what its comments say. Run with the folder that holds digits.csv and sunspots.csv.
#include <ebb/ebb.h>
#include <cstdio>

using namespace ebb;
using namespace ebb::literals;  // 512_MiB, 24_GiB

void tensors() {
  Tensor a = Tensor::from({{1.f, 2.f}, {3.f, 4.f}});  // f32[2, 2], on the CPU
  Tensor b = matmul(a, a) + 1;                        // runs now; a number takes the tensor's dtype
  float corner = b.item<float>({0, 0});               // without an index: of a one-element tensor
  std::vector<float> host = b.to_vector<float>();
  Tensor column = Tensor::from(host, {4, 1});    // from any contiguous range, with a shape
  Tensor elsewhere = column.to(Device::best());  // CUDA 0 if there is one, else the CPU
  std::printf("%g %lld\n", static_cast<double>(corner),
              static_cast<long long>(elsewhere.shape()[0]));
}

void gradients_of_anything() {
  Tensor a = Tensor::from({{1.f, 2.f}, {3.f, 4.f}});
  Tensor w = Tensor::full({2, 2}, 0.5).with_grad();
  Tensor loss = mean(square(matmul(a, w)));
  loss.backward();  // w.grad() holds dloss/dw; another backward() adds to it
  Tensors g = gradients(mean(square(matmul(a, w))),
                        {w});  // the functional form, in both modes, of any order
  std::printf("%g %g\n", static_cast<double>(w.grad().item<float>({0, 0})),
              static_cast<double>(g[0].item<float>({0, 0})));
}

// A model is written once, for both modes.
struct Classifier {
  models::Dense hidden, out;
  Classifier(Parameters p, int64_t in, int64_t classes)
      : hidden(p.scope("hidden"), in, 128, Activation::relu), out(p.scope("out"), 128, classes) {}
  Tensor operator()(const Tensor& x) const { return out(hidden(x)); }
};

void train_eagerly(Device device, const DataSet& digits) {
  Parameters params(device, Seed{7});  // a handle; initial values depend on seed and name alone
  Classifier model(params, 64, 10);
  optim::Adam adam({.learning_rate = optim::cosine(
                        1e-3, {.warm_up = 10, .steps = 1'000})});  // or a number, or a tensor
  DataLoader batches(digits, {.batch = 128, .shuffle = Seed{1}, .device = device});
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto [x, y] : batches) {  // every pass is a new shuffle
      Tensor loss = softmax_cross_entropy(model(x), y);
      loss.backward();
      adam.step(params);
      params.zero_grad();  // frees them; or adam.minimize(loss, params) for all three lines
    }                      // what this step computed is freed here
  // The same step, traced once per shape, run as a graph; it updates the same parameters in place.
  auto step = compile([&](Tensor x, Tensor y) {
    return adam.minimize(softmax_cross_entropy(model(x), y), params);
  });
  for (auto [x, y] : batches) Tensor loss = step(x, y);
  params.save("digits.safetensors");  // values, moments, counts, random state
}  // parameters, gradients and moments are freed here

void train_as_graph(Device device, const DataSet& digits) {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  Tensor y = graph.placeholder("y", DType::i32, {-1});
  Parameters params(graph, Seed{7});
  Classifier model(params, 64, 10);  // the same class
  Tensor scores = model(x);
  Tensor loss = softmax_cross_entropy(scores, y);
  Tensor train = optim::Adam({.learning_rate = 1e-3})
                     .minimize(loss, params);  // the loss; computing it makes the step

  memory::Plan plan =
      graph.plan({train}, {{x, {128, 64}}, {y, {128}}}, device);  // before anything runs
  std::printf("will take %zu bytes, at least %zu\n", plan.peak_bytes, plan.lower_bound_bytes);

  Session session(graph, {.device = device, .memory_limit = 512_MiB});
  session.initialize(params);
  session.restore("digits.safetensors");  // written by the other mode
  for (auto [bx, by] : DataLoader(digits, {.batch = 128, .drop_last = true})) {
    float value = session.run(train, {{x, bx}, {y, by}}).item<float>();
    std::printf("%g\n", static_cast<double>(value));
  }
  auto [value, row] = session.run(
      {loss, scores}, {{x, Tensor::full({1, 64}, 0)}, {y, Tensor::from({3})}});  // no training
  auto step = session.prepare(train, {x, y});  // nothing is looked up any more
  for (auto [bx, by] : DataLoader(digits, {.batch = 128, .drop_last = true}))
    Tensor after = step(bx, by);
  memory::Breakdown held = session.memory();  // variables, optimizer state, arena, workspace
  memory::CloseReport report =
      session
          .close();  // what was freed and what went back to the device; a scope's end does it too
  std::printf("held %zu, returned %zu\n", held.total_bytes, report.returned_bytes);
}

void forecast(Device device, const std::string& file) {
  TimeSeries sunspots = TimeSeries::csv(file, {.value = "sunspots"});
  auto [training, validation] = sunspots.windows(
      {.length = 48, .horizon = 1, .validation = 0.2});  // scaled on the training part
  Parameters params(device, Seed{7});
  models::Lstm lstm(params.scope("lstm"), 1, {.hidden = 64, .layers = 2, .dropout = 0.1});
  models::Dense head(params.scope("head"), 64, 1);
  optim::AdamW adamw({.learning_rate = 1e-3, .weight_decay = 1e-2});
  for (auto [past, next] :
       DataLoader(training, {.batch = 64, .shuffle = Seed{1}, .device = device})) {
    models::LstmOutput out = lstm(
        past, Phase::training);  // past: [batch, time, feature]; out.sequence, out.hidden, out.cell
    Tensor loss = adamw.minimize(mse(head(last_step(out.sequence)), next), params);
  }
}

void accumulate_gradients(Device device) {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  Tensor y = graph.placeholder("y", DType::i32, {-1});
  Parameters params(graph, Seed{7});
  Classifier model(params, 64, 10);
  Tensor loss = softmax_cross_entropy(model(x), y);
  // Micro-batches of any sizes. One update per 512 samples, equal to an update by the whole batch.
  // The same call works in eager.
  optim::Accumulator accumulate(optim::Adam({.learning_rate = 1e-3}), {.samples = 512});
  Tensor micro_step = accumulate.minimize(loss, params, rows(y));
  // The largest micro-batch of a batch of 512 that stays below a limit.
  memory::MicroBatch fit =
      graph.fit_micro_batch({micro_step}, {{x, {512, 64}}, {y, {512}}}, device, 64_MiB);
  std::printf("%lld rows, %lld times\n", static_cast<long long>(fit.size),
              static_cast<long long>(fit.steps));
}

void memory_of(Device device) {
  memory::Stats now =
      memory::stats(device);  // requested, allocated, reserved: each current, peak, total
  std::printf("%zu of %zu reserved bytes in use\n", now.allocated.current, now.reserved.current);
  memory::set_limit(device, 2_GiB);  // bounds reserved bytes, at any time
  memory::PeakScope peak(device);  // scopes nest; the most bytes allocated on the device meanwhile
  Tensor t = Tensor::full({1024, 1024}, 1, DType::f32, device);
  std::printf("%zu\n", peak.bytes());
  memory::ReleaseReport released = memory::release_cached(device);
  std::printf("%zu went back\n", released.returned_bytes);

  // An eager step on a twin of the device: nothing real is touched, no values exist, every byte is
  // counted.
  memory::Prediction eager = memory::predict(Device::simulated("h200", 141_GiB), [](Device twin) {
    Parameters params(twin, Seed{7});
    Classifier model(params, 64, 10);
    Tensor loss = softmax_cross_entropy(model(Tensor::full({4096, 64}, 0, DType::f32, twin)),
                                        Tensor::full({4096}, 0, DType::i32, twin));
    optim::Adam().minimize(loss, params);
  });
  std::printf("%zu\n", eager.peak_bytes);

  std::vector<memory::Lifetime> buffers = {{.first = 0, .end = 3, .bytes = 4096},
                                           {.first = 2, .end = 5, .bytes = 512}};
  memory::Placement placed =
      memory::place(buffers);  // the planner alone: offsets, total_bytes, lower_bound_bytes
  std::printf("%zu\n", placed.total_bytes);
}

void compare_my_own(Device device, const DataSet& digits) {
  memory::Comparison comparison(device);
  comparison.measure(
      "eager", [&](Device here,
                   memory::Marks& mark) {  // runs on the device's twin first, for the prediction
        Parameters params(here, Seed{7});
        Classifier model(params, 64, 10);
        mark("built");
        for (auto [x, y] : DataLoader(digits, {.batch = 128, .device = here}))
          mark.step(optim::Adam().minimize(softmax_cross_entropy(model(x), y),
                                           params));  // reads the loss where there is one
        mark("trained");
      });
  comparison.print();                    // the table
  comparison.write_html("report.html");  // one file, opens in any browser
  comparison.write_perfetto("trace.json");
  comparison.write_pytorch_snapshot("snapshot.pickle");  // opens in PyTorch's memory_viz
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  Device device = Device::best();
  DataSet digits = DataSet::csv(folder + "/digits.csv", {.label = "digit"});
  tensors();
  gradients_of_anything();
  train_eagerly(device, digits);
  train_as_graph(device, digits);
  forecast(device, folder + "/sunspots.csv");
  accumulate_gradients(device);
  memory_of(device);
  compare_my_own(device, digits);
}
