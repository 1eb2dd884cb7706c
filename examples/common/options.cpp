#include "ebb/examples/common/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

namespace examples {

namespace {

constexpr std::int64_t kMost = 1'000'000;  // so that no product of two of them and a size wraps
constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();

struct GivenText {  // what is understood only after all arguments are known
  std::string model;
  std::string mode = "graph";
  std::string device = {};
  std::string accumulate = {};
};

// Of CLI11's own checks the messages, and what they add to the help, are not for people.
CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        std::int64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end && value >= least && value <= most)
          return std::string();
        return "takes a whole number from " + std::to_string(least) + " to " +
               std::to_string(most) + ", not '" + text + "'";
      },
      "");
}

CLI::Validator size() {
  return CLI::Validator(
      [](std::string& text) {
        const std::string why = "takes a size, as in 64MiB, not '" + text + "'";
        if (text.empty() || text[0] < '0' || text[0] > '9') return why;
        try {
          return CLI::AsSizeValue(false)(text);
        } catch (const CLI::Error&) {
          return why;
        }
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        std::string list;
        for (const std::string& word : words) list += (list.empty() ? "" : " or ") + word;
        return "takes " + list + ", not '" + text + "'";
      },
      "");
}

std::int64_t parse_accumulate(std::string text) {
  if (text == "auto")
    throw BadArguments(
        "--accumulate auto comes with a later version of ebb; for now it takes a number");
  const std::string why = whole_number(1, kMost)(text);
  if (!why.empty()) throw BadArguments("--accumulate: " + why);
  return std::stoll(text);
}

void check_data(const Options& options) {
  const std::size_t comma = options.data.find(',');
  if (options.model == "lstm" || comma == std::string::npos)
    return check_exists("--data", options.data);
  check_exists("--data", options.data.substr(0, comma));
  check_exists("--data", options.data.substr(comma + 1));
}

}  // namespace

Options defaults(const std::string& model) {
  Options options;
  options.model = model;
  const std::string folder = EBB_EXAMPLES_DATA;
  if (model == "lstm") {
    options.epochs = 14;
    options.hidden = 64;
    options.layers = 2;
    options.learning_rate = 2e-3;
    options.data = folder + "/sunspots.csv";
  } else {
    options.epochs = 40;
    options.batch = 32;
    options.hidden = 128;
    options.learning_rate = 3e-3;
    options.data = folder + "/digits.csv";
  }
  return options;
}

std::optional<Options> parse(int argc, const char* const* argv, const Program& program) {
  // The defaults depend on the model, which is among the arguments: it is looked for first.
  GivenText text{.model = program.model.empty() ? "lstm" : program.model};
  if (program.model.empty())
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument.starts_with("--model=")) text.model = argument.substr(8);
      if (argument == "--model" && i + 1 < argc) text.model = argv[i + 1];
    }
  Options options = defaults(text.model);
  if (program.compares) options.accumulate = 4;
  text.accumulate = std::to_string(options.accumulate);

  CLI::App app(program.purpose, program.name);
  const auto number = [&](const char* option, std::int64_t& value, const char* help) {
    app.add_option(option, value, help)
        ->check(whole_number(1, kMost))
        ->capture_default_str()
        ->type_name("N");
  };
  const auto choice = [&](const char* option, std::string& value, const char* help,
                          const std::vector<std::string>& values) {
    app.add_option(option, value, help)
        ->check(one_of(values))
        ->capture_default_str()
        ->type_name("WORD");
  };
  if (program.model.empty())
    choice("--model", text.model, "lstm (sunspots) or mlp (handwritten digits)", {"lstm", "mlp"});
  if (!program.compares)
    choice("--mode", text.mode, "graph (in a session) or eager", {"graph", "eager"});
  const CLI::Option* const device =
      app.add_option("--device", text.device,
                     "cpu, cuda, cuda:N, sim:PROFILE:SIZE (sim:h200:141GiB);\n"
                     "without it cuda where there is a GPU, else cpu")
          ->type_name("DEVICE");
  number("--epochs", options.epochs, "Passes over the training data");
  number("--batch", options.batch, "Samples that one update is made from");
  app.add_option("--accumulate", text.accumulate,
                 program.compares ? "Micro-batches of a batch, in the second table"
                                  : "Micro-batches that a batch is cut into")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--memory-limit", options.memory_limit,
                 "The most that training may reserve, as in 64MiB")
      ->transform(size())
      ->type_name("SIZE");
  number("--hidden", options.hidden, "Units of each hidden layer");
  number("--layers", options.layers, "Hidden layers");
  number("--length", options.length, "Values that the lstm sees; the mlp has none");
  app.add_option("--seed", options.seed, "Of initial values and shuffles")
      ->check(whole_number(0, kMostSeed))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--data", options.data,
                 program.model == "lstm" ? "A CSV; its last column is the series"
                                         : "A CSV; its last column is learned (mlp:\n"
                                           "or MNIST's files IMAGES,LABELS)")
      ->type_name("FILE");
  app.add_option("--json", options.json, "Write the figures there")->type_name("FILE");
  if (!program.compares)
    add_files(app, options, "Save the run there after each epoch",
              "Go on with the run saved there, up to --epochs");

  if (!parse(app, argc, argv)) return {};

  options.model = text.model;
  options.mode = text.mode == "eager" ? Mode::eager : Mode::graph;
  options.accumulate = parse_accumulate(text.accumulate);
  if (options.batch % options.accumulate != 0)
    throw BadArguments("--accumulate " + std::to_string(options.accumulate) +
                       " does not divide --batch " + std::to_string(options.batch));
  try {
    // Only now: to look for a GPU takes memory of it.
    options.device = device->count() ? ebb::Device::parse(text.device) : ebb::Device::best();
  } catch (const ebb::Error& error) {
    throw BadArguments(std::string("--device: ") + error.what());
  }
  check_data(options);
  if (!options.json.empty()) check_output("--json", options.json);
  check_files(options, options.device);
  return options;
}

}  // namespace examples
