// Comparisons of the memory of programs: the bytes counted at each moment, and how they are shown.
#include "ebb/core/memory/comparison.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/test_device.h"

using namespace ebb;
using ebb::tests::kib;
using namespace ebb::literals;

namespace {

// Holds 8 KiB. Its two steps take 4 and 16 KiB on top; 64 KiB after each belong to no step.
void program(const Device& here, memory::Marks& mark) {
  const Tensor parameters = kib(8, here);
  mark("built");
  for (const std::int64_t size : {4, 16}) {
    { const Tensor scratch = kib(size, here); }
    mark.step(Tensor::full({}, static_cast<double>(size), DType::f32, here));
    { const Tensor between = kib(64, here); }
    mark("validated");
  }
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("figures keep one decimal and a unit; exact ones keep every digit", "[host]") {
  CHECK(memory::figure(0) == "0 B");
  CHECK(memory::figure(1023) == "1023 B");
  CHECK(memory::figure(1024) == "1.0 KiB");
  CHECK(memory::figure(1_MiB - 1) == "1.0 MiB");
  CHECK(memory::figure(1536_KiB) == "1.5 MiB");
  CHECK(memory::exact_figure(999) == "999");
  CHECK(memory::exact_figure(1000) == "1,000");
  CHECK(memory::exact_figure(12038144) == "12,038,144");
  CHECK(memory::change_figure(1024, 512) == "-512 B");
  CHECK(memory::change_figure(512, 2560) == "+2.0 KiB");
  CHECK(memory::change_figure(7, 7) == "0 B");
}

TEST_CASE(
    "a comparison counts steps, what lies between them and what is left, above what was held") {
  const Tensor before = kib(100, Device::cpu());
  memory::Comparison comparison(Device::cpu());
  comparison.measure("one", program);
  const memory::Measurement& one = comparison.results().at(0);
  for (const memory::Footprint& footprint : {one.predicted, one.measured}) {
    CHECK(footprint.steps == 2);
    CHECK(footprint.at("built") == 8_KiB);
    CHECK(footprint.at("validated") == 8_KiB);
    CHECK(footprint.moments.size() == 2);
    CHECK(footprint.step_peak_bytes == 24_KiB);
    CHECK(footprint.held_between_steps_bytes == 8_KiB + 512);  // includes the loss
    CHECK(footprint.peak_bytes == 72_KiB);
    CHECK(footprint.end_bytes == 0);
    CHECK(footprint.reserved_released_bytes == 0);
    CHECK_ERROR(footprint.at("nowhere"), Error, "nowhere");
  }
  CHECK(one.losses == std::vector<double>{4, 16});
  CHECK(one.fits);
}

TEST_CASE("what a program leaves behind is shown, and a prediction that is off is not hidden") {
  EBB_SKIP_WITH_LARGE_PAGES();
  std::vector<Tensor> kept;
  memory::Comparison comparison(Device::cpu());
  comparison.measure("leaks", [&](const Device& here, memory::Marks&) {
    kept.push_back(kib(4, here));
    if (here == Device::cpu()) kept.push_back(kib(3, here));
  });
  CHECK(comparison.results()[0].predicted.end_bytes == 4_KiB);
  CHECK(comparison.results()[0].measured.end_bytes == 7_KiB);
  CHECK(comparison.results()[0].measured.reserved_released_bytes > 0);
  const std::string table = comparison.table();
  INFO(table);
  CHECK(holds(table, "Predicted and measured differ in"));
  CHECK(holds(table, "most by 4,096 bytes"));
}

TEST_CASE("on a simulated device the prediction is the run, also where it does not fit", "[host]") {
  const Device device = Device::simulated("cpu", 1_MiB);
  memory::Comparison comparison(device);
  comparison.measure("one", [&](const Device& here, memory::Marks& mark) {
    CHECK(here == device);
    program(here, mark);
    kib(2048, here);
  });
  const memory::Measurement& one = comparison.results()[0];
  CHECK(one.losses.empty());
  CHECK(one.measured.steps == 2);
  CHECK(one.measured.peak_bytes == 2_MiB);
  CHECK(one.predicted.peak_bytes == one.measured.peak_bytes);
  CHECK_FALSE(one.fits);
  CHECK(holds(comparison.table(), "one does not fit"));
  CHECK_FALSE(holds(comparison.table(), "measured"));
}

TEST_CASE("a program that frees what was there before it holds nothing of its own", "[host]") {
  const Device device = Device::simulated("cpu", 1_GiB);
  Tensor before = Tensor::zeros({1 << 20}, DType::f32, device);
  memory::Marks mark(device);
  before = {};
  mark("freed");
  const Tensor less = Tensor::zeros({1 << 10}, DType::f32, device);
  mark.step({});
  const memory::Footprint footprint = mark.finish();
  CHECK(footprint.at("freed") == 0);
  CHECK(footprint.held_between_steps_bytes == 0);
  CHECK(footprint.step_peak_bytes == 0);
  CHECK(footprint.end_bytes == 0);
  CHECK(footprint.reserved_released_bytes == 0);
}

TEST_CASE("a program that fails is no result, and the traces have it") {
  memory::Comparison comparison(Device::cpu());
  comparison.measure("one", program);
  const auto fails = [&](const Device& here, memory::Marks&) {
    kib(1, here);
    throw Error("it failed");
  };
  CHECK_ERROR(comparison.measure("two", fails), Error, "it failed");
  CHECK(comparison.results().size() == 1);
  const tests::TemporaryFolder folder;
  comparison.write_perfetto(folder.path("trace.json"));
  CHECK(holds(tests::contents_of(folder.path("trace.json")), "two, failed on "));
}

TEST_CASE("a step whose loss cannot be read names the line of the program that marked it") {
  memory::Marks marks(Device::cpu());
  CHECK_ERROR(marks.step(Tensor::zeros({2})), Error, "memory_comparison.cpp:");
  CHECK(marks.losses().empty());
}

TEST_CASE(
    "the table is 80 columns wide however many programs there are and however much they take") {
  const auto takes = [](std::int64_t gib) {
    return [gib](const Device& here, memory::Marks& mark) {
      mark("a moment with a name that is rather longer than its column");
      for (std::int64_t i = 0; i < 2; ++i) {
        kib(gib << 20, here);
        mark.step({});
      }
      mark("after " + std::to_string(gib));
    };
  };
  for (const bool simulated : {true, false}) {
    memory::Comparison comparison(simulated ? Device::simulated("cpu", 1_GiB) : Device::cpu());
    for (const std::int64_t gib : {0, 1, 12'345, 1, 3}) {
      comparison.measure("a program with a long name, number " + std::to_string(gib),
                         simulated ? memory::Comparison::Program(takes(gib)) : program);
      const std::string table = comparison.table();
      INFO(table);
      CHECK_FALSE(std::regex_search(table, std::regex("[^\n]{81}")));
      CHECK(holds(table, "held between steps"));
      CHECK(holds(table, "after close or scope end"));
    }
  }
}

TEST_CASE("a comparison of nothing is an empty table and an empty list", "[host]") {
  const memory::Comparison comparison(Device::cpu());
  CHECK(holds(comparison.table(), "cpu"));
  CHECK(nlohmann::json::parse(comparison.json()).at("programs").empty());
}

TEST_CASE("the JSON of a comparison holds every figure") {
  memory::Comparison comparison(Device::cpu());
  comparison.measure("one", program);
  const nlohmann::json json = nlohmann::json::parse(comparison.json());
  CHECK(json.at("device") == "cpu");
  CHECK(json.at("simulated") == false);
  const nlohmann::json& one = json.at("programs").at(0);
  CHECK(one.at("name") == "one");
  CHECK(one.at("losses") == std::vector<double>{4, 16});
  CHECK(one.at("predicted") == one.at("measured"));
  CHECK(one.at("measured").at("step_peak_bytes") == 24_KiB);
  CHECK(one.at("measured").at("moments").at(1).at("name") == "validated");
}
