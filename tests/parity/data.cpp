// Data.
#include <algorithm>

#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

using Values = std::vector<double>;

DataSet five() {
  return DataSet(Tensor::from({0.f, 1.f, 2.f, 3.f, 4.f}), Tensor::from({0, 1, 2, 3, 4}));
}

// Inputs of one pass over the data, a vector for each batch.
std::vector<Values> pass(DataLoader& loader) {
  std::vector<Values> batches;
  for (auto [x, y] : loader) batches.push_back(numbers(x));
  return batches;
}
std::vector<Values> pass(DataLoader&& loader) { return pass(loader); }

Values flat(const std::vector<Values>& batches) {
  Values all;
  for (const Values& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

}  // namespace

EBB_PROGRAM("TensorDataset(x, y)") {
  CHECK(five().size() == 5);
  CHECK(DataSet::of({five().inputs(), five().targets(), five().inputs()}).fields().size() == 3);
}
EBB_PROGRAM("DataLoader(data, batch_size=2)") {
  CHECK(pass(DataLoader(five(), {.batch = 2})) == std::vector<Values>{{0, 1}, {2, 3}, {4}});
}
EBB_PROGRAM("DataLoader(data, 2, shuffle=True, drop_last=True)") {
  DataLoader loader(five(), {.batch = 2, .shuffle = true, .drop_last = true});
  const std::vector<Values> first = pass(loader);
  CHECK(first.size() == 2);
  bool differs = false;
  for (int i = 0; i < 5; ++i) differs |= pass(loader) != first;
  CHECK(differs);
}
EBB_PROGRAM("DataLoader(.., num_workers=1, prefetch_factor=n), .prefetch(n)") {
  CHECK(flat(pass(DataLoader(five(), {.batch = 2, .ahead = 3}))) == Values{0, 1, 2, 3, 4});
  CHECK(flat(pass(DataLoader(five(), {.batch = 2, .ahead = 0}))) == Values{0, 1, 2, 3, 4});
}
EBB_PROGRAM("class Data(Dataset): __len__, __getitem__") {
  const SampleReader reader{.size = 3,
                            .fields = {{DType::f32, {2}}},
                            .read = [](std::int64_t sample, std::size_t, void* values) {
                              auto* numbers = static_cast<float*>(values);
                              numbers[0] = static_cast<float>(sample);
                              numbers[1] = -static_cast<float>(sample);
                            }};
  CHECK(flat(pass(DataLoader(reader, {.batch = 2}))) == Values{0, -0.0, 1, -1, 2, -2});
  const DataSet made = DataSet::generate(
      3, [](std::int64_t i) { return Tensors{Tensor::full({}, static_cast<double>(i))}; });
  CHECK(numbers(made.inputs()) == Values{0, 1, 2});
}
EBB_PROGRAM("random_split(data, [0.6, 0.4])") {
  const auto [rest, part] = five().split(0.4, Seed{1});
  CHECK(rest.size() == 3);
  CHECK(part.size() == 2);
}
EBB_PROGRAM("Subset(data, [4, 0]), ConcatDataset([a, b])") {
  const std::vector<std::int64_t> chosen = {4, 0};
  CHECK(numbers(five().subset(chosen).inputs()) == Values{4, 0});
  CHECK(five().concatenated(five()).size() == 10);
}
EBB_PROGRAM("tf.data.Dataset.from_tensor_slices((x, y)).batch(2)") {
  CHECK(pass(DataLoader(five(), {.batch = 2})).size() == 3);
}
EBB_PROGRAM("data.shuffle(n).repeat(2)") {
  DataLoader loader(five(), {.batch = 2, .shuffle = Seed{1}});
  Values all;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const double x : flat(pass(loader))) all.push_back(x);
  std::sort(all.begin(), all.end());
  CHECK(all == Values{0, 0, 1, 1, 2, 2, 3, 3, 4, 4});
}
EBB_PROGRAM("data.map(f), transforms") {
  const DataSet twice = five().mapped([](const Tensors& fields) {
    return Tensors{fields[0] * 2, fields[1]};
  });
  CHECK(numbers(twice.inputs()) == Values{0, 2, 4, 6, 8});
  DataLoader loader(five(), {.batch = 5, .transform = [](const Batch& batch) {
                               return Batch{batch.input + 1, batch.target};
                             }});
  CHECK(flat(pass(loader)) == Values{1, 2, 3, 4, 5});
}
EBB_PROGRAM("data.take(2), data.skip(2)") {
  CHECK(numbers(five().take(2).inputs()) == Values{0, 1});
  CHECK(numbers(five().skip(2).inputs()) == Values{2, 3, 4});
}
EBB_PROGRAM("np.save(f, x), np.load(f), np.savez(f, a=x)") {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from({{1.0, 2.0}, {3.0, 4.0}});
  save_npy(folder.path("x.npy"), x);
  CHECK(difference(load_npy(folder.path("x.npy")), x) == "");
  if (!npz::is_supported()) return;
  save_npz(folder.path("x.npz"), {{"a", x}});
  CHECK(difference(load_npz(folder.path("x.npz")).at("a"), x) == "");
}
EBB_PROGRAM("torch.from_dlpack(x), x.__dlpack__()") {
  const Tensor x = Tensor::from({{1.0, 2.0}, {3.0, 4.0}});
  CHECK(difference(from_dlpack(to_dlpack(x)), x) == "");
}
EBB_PROGRAM("pd.read_csv(f)") {
  const TemporaryFolder folder;
  const std::string file = folder.file("data.csv", "a,b,label\n1,2,0\n3,4,1\n");
  const DataSet data = DataSet::csv(file, {.label = "label"});
  CHECK(numbers(data.inputs()) == Values{1, 2, 3, 4});
  CHECK(data.targets().dtype() == DType::i32);
}
EBB_PROGRAM("keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)") {
  Parameters params(Device::cpu(), Seed{1}, DType::f64);
  const Tensor w = params.declare("w", {}, initializers::constant(0));
  EarlyStopping stopping({.patience = 2});
  for (const double loss : {3.0, 1.0, 2.0, 2.5, 0.5}) {
    assign(w, loss);
    if (stopping.update(loss, params).stop) break;
  }
  stopping.restore(params);
  CHECK(w.item<double>() == 1);
}
EBB_PROGRAM("sklearn.metrics.accuracy_score, confusion_matrix, r2_score") {
  const Tensor scores = Tensor::from({{0.9f, 0.1f}, {0.2f, 0.8f}, {0.7f, 0.3f}});
  const Tensor labels = Tensor::from({0, 1, 1});
  CHECK(metrics::accuracy(scores, labels) == Approx(2.0 / 3));
  CHECK(numbers(metrics::confusion_matrix(scores, labels)) == Values{1, 0, 1, 1});
  CHECK(metrics::r2(Tensor::from({1.0, 2.0}), Tensor::from({1.0, 2.0})) == 1);
}
EBB_PROGRAM("sklearn.metrics.precision_score, recall_score, f1_score") {
  const Tensor scores = Tensor::from({{0.9f, 0.1f}, {0.2f, 0.8f}, {0.7f, 0.3f}});
  const Tensor labels = Tensor::from({0, 1, 1});
  CHECK(metrics::precision(scores, labels) == Approx((0.5 + 1) / 2));
  CHECK(metrics::recall(scores, labels, {.positive = 1}) == Approx(0.5));
  CHECK(metrics::f1(scores, labels) == Approx(2.0 / 3));
}
EBB_PROGRAM("sklearn.metrics.roc_auc_score, top_k_accuracy_score") {
  const Tensor scores = Tensor::from({0.1f, 0.4f, 0.35f, 0.8f});
  CHECK(metrics::roc_auc(scores, Tensor::from({0, 0, 1, 1})) == 0.75);
  CHECK(metrics::top_k_accuracy(Tensor::from({{0.9f, 0.1f}}), Tensor::from({1}), 2) == 1);
}

}  // namespace ebb::tests::parity
