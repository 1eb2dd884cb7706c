#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

TEST_CASE("A page of ranks has each rank's own run, predicted beside measured") {
  const World world;
  const DataSet data = some_data();
  memory::Comparison comparison(Device::cpu());
  comparison.measure(
      "train",
      [&](const Device& here, memory::Marks& mark) {
        const World over;
        const Tensor of_rank = Tensor::zeros({1000, over.rank() + 1}, DType::f32, here);
        const Parameters parameters(here);
        const models::Mlp model(parameters, {5, 300, 1});
        const optim::Adam adam = adam_over(over);
        DataLoader loader(data, {.batch = kBatch, .device = here, .shard = over});
        for (auto [x, y] : loader) mark.step(adam.minimize(mse(model(x), y), parameters));
      },
      {.values = 1});
  const std::string file = "ranks.html", begin = R"(<script id="data" type="application/json">)";
  comparison.write_html(file, world);
  const auto peak = static_cast<std::int64_t>(comparison.results()[0].measured.peak_bytes);
  const std::vector<std::int64_t> peaks =
      distributed::all_gather(Tensor::from(std::vector{peak}), world).to_vector<std::int64_t>();
  if (world.rank() > 0) return;
  std::ifstream in(file);
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove(file);
  const std::size_t from = page.find(begin) + begin.size();
  const auto parsed = nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
  REQUIRE(parsed["runs"].size() == peaks.size());
  for (std::size_t k = 0; k < peaks.size(); ++k) {
    const nlohmann::json& run = parsed["runs"][k];
    CHECK(run["name"] == "rank " + std::to_string(k) + ": train");
    CHECK(run["predicted_peak_bytes"] == peaks[k]);
    CHECK(run["spans"].size() >= 3);
    if (k > 0) CHECK(peaks[k] > peaks[k - 1]);
  }
}

TEST_CASE("A page of ranks needs a world that is there") {
  const memory::Comparison comparison(Device::cpu());
  CHECK(error_of([&] {
          comparison.write_html("ranks.html", World::simulated(0, 2));
        }).find("this world was made for predictions") != std::string::npos);
}

}  // namespace
}  // namespace ebb::tests
