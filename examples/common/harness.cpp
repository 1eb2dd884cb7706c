#include "ebb/examples/common/harness.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string_view>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/figures.h"

namespace examples {

namespace {

namespace fs = std::filesystem;

std::atomic<bool> is_interrupted = false;

// Has a thread of its own wait for Ctrl-C. With a handler, which runs on the stack of a thread that
// computes, half of the runs ended in a corrupted heap, freed by oneDNN's sgemm (2.6.3).
void watch_for_interrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // of all threads made later, too
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    is_interrupted = true;
    sigwait(&signals, &signal);  // pressed again
    std::_Exit(130);
  }).detach();
}

constexpr std::int64_t kMost = 1'000'000;  // so that no product of two options and a size overflows

// Arguments that no program can run with: exit code 2.
class BadArguments : public ebb::Error {
 public:
  using Error::Error;
};

std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

int fail(const std::string& program, const std::string& why, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), first_line(why).c_str());
  return code;
}

// Runs the body and turns errors into the exit code of main.
int run_main(const std::string& program, const std::function<int()>& body) {
  try {
    const int code = body();
    // A full disk or a closed pipe loses the output: report it.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(program, "the standard output could not be written", 1);
    return code;
  } catch (const Interrupted& error) {
    return fail(program, error.what(), 130);
  } catch (const BadArguments& error) {
    return fail(program, std::string(error.what()) + " (--help lists the arguments)", 2);
  } catch (const ebb::OutOfMemory& error) {
    std::string why = first_line(error.what());
    if (error.limit_bytes() != ebb::memory::kNoLimit)
      why += " within a limit of " + ebb::memory::figure(error.limit_bytes());
    return fail(program, why, 1);
  } catch (const std::exception& error) {
    return fail(program, error.what(), 1);
  }
}

// Parses the arguments. Prints help and returns false if asked for it. Throws BadArguments.
bool parse(CLI::App& app, int argc, const char* const* argv) {
  app.get_formatter()->column_width(24);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string why = error.what();
    const std::size_t flag = why.find(" was given a disallowed flag override");
    if (flag != std::string::npos)
      throw BadArguments("--" + why.substr(0, flag) + " takes no value");
    throw BadArguments(why.substr(0, why.find(':')) + " takes one value");
  } catch (const CLI::ParseError& error) {
    throw BadArguments(error.what());
  }
}

// A validator with a message for people, and without CLI11's additions to the help.
CLI::Validator takes(const std::string& what, const std::function<bool(std::string&)>& reads) {
  return CLI::Validator(
      [what, reads](std::string& text) {
        const std::string why = "takes " + what + ", not '" + text + "'";
        return reads(text) ? std::string() : why;
      },
      "");
}

CLI::Validator takes_number(std::int64_t least, std::int64_t most) {
  const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
  return takes("a whole number " + range, [least, most](const std::string& text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end && value >= least && value <= most;
  });
}

CLI::Validator takes_size() {
  return takes("a size, as in 64MiB", [](std::string& text) {
    try {
      return !text.empty() && text[0] >= '0' && text[0] <= '9' &&
             CLI::AsSizeValue(false)(text).empty() && text != "0";
    } catch (const CLI::Error&) {
      return false;
    }
  });
}

void check_output(const std::string& option, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw BadArguments(option + " " + file + ": there is no such folder");
  if (fs::is_directory(file)) throw BadArguments(option + " " + file + ": that is a folder");
}

void check_input(const std::string& option, const std::string& file) {
  if (fs::is_directory(file)) throw BadArguments(option + " " + file + ": that is a folder");
  if (!fs::is_regular_file(file))
    throw BadArguments(option + " " + file + ": there is no such file");
}

void add_files(CLI::App& app, Arguments& arguments, const char* save, const char* resume) {
  const auto add = [&](const char* option, std::string& file, const char* help) {
    // Refuses "", which a script passes when its variable is not set: it would lose the run or
    // start it anew.
    app.add_option(option, file, help)
        ->check(takes("a file's name", [](const std::string& text) { return !text.empty(); }))
        ->type_name("FILE");
  };
  add("--save", arguments.save, save);
  add("--resume", arguments.resume, resume);
}

void check_files(const Arguments& arguments) {
  if (!arguments.save.empty()) {
    check_output("--save", arguments.save);
    if (fs::exists(arguments.save) && !fs::is_regular_file(arguments.save))
      throw BadArguments("--save " + arguments.save + ": that is no regular file");
  }
  if (!arguments.resume.empty()) check_input("--resume", arguments.resume);
  if (arguments.device.is_simulated() && !(arguments.save.empty() && arguments.resume.empty()))
    throw BadArguments(std::string(arguments.save.empty() ? "--resume" : "--save") +
                       ": on a simulated device there are no values");
}

std::vector<std::function<void(CLI::App&)>> own_arguments;

std::optional<Arguments> parse_arguments(const std::string& program, int argc,
                                         const char* const* argv, const char* purpose,
                                         bool trains) {
  CLI::App app(purpose, program);
  Arguments arguments;
  std::string device = "cpu";
  const CLI::Option* const by_place = app.add_option("DEVICE", device, "The same")->type_name("");
  const CLI::Option* const by_name =
      app.add_option("--device", device,
                     "cpu (without it), cuda, cuda:N, or a simulated device,\n"
                     "sim:PROFILE:SIZE (sim:h200:141GiB), which has no\n"
                     "values but counts every byte")
          ->type_name("DEVICE");
  if (trains)
    add_files(app, arguments, "Save the run there, again and again",
              "Go on with the run saved there");
  for (const auto& add : own_arguments) add(app);
  if (!parse(app, argc, argv)) return {};
  if (by_place->count() + by_name->count() > 1) throw BadArguments("takes one device, not two");
  try {
    arguments.device = ebb::Device::parse(device, {});
  } catch (const ebb::Error& error) {
    throw BadArguments(error.what());
  }
  check_files(arguments);
  return arguments;
}

int run_small(int argc, const char* const* argv, const char* purpose, bool trains,
              const std::function<int(const Arguments&)>& body) {
  const std::string program = fs::path(argv[0]).filename();
  return run_main(program, [&] {
    const auto arguments = parse_arguments(program, argc, argv, purpose, trains);
    if (!arguments) return 0;
    try {
      return body(*arguments);
    } catch (const ebb::SimulatedRead&) {
      if (!arguments->device.is_simulated()) throw;
      std::printf("What follows needs values, which a simulated device does not have.\n");
      return 0;
    }
  });
}

// The model of --model, found before the arguments are parsed: it decides the other defaults.
std::string chosen_model(int argc, const char* const* argv) {
  std::string model = "lstm";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--model=")) model = argument.substr(8);
    if (argument == "--model" && i + 1 < argc) model = argv[i + 1];
  }
  return model;
}

std::optional<Options> parse_options(int argc, const char* const* argv, const Program& program) {
  const bool chooses = program.model.empty();
  Options options = defaults(chooses ? chosen_model(argc, argv) : program.model);
  if (program.compares) options.accumulate = 4;
  std::string mode = name(options.mode), device_name;
  std::string accumulate = std::to_string(options.accumulate);

  CLI::App app(program.purpose, program.name);
  const auto number = [&](const char* option, auto& value, const char* help, std::int64_t least = 1,
                          std::int64_t most = kMost) {
    app.add_option(option, value, help)
        ->check(takes_number(least, most))
        ->capture_default_str()
        ->type_name("N");
  };
  const auto choice = [&](const char* option, std::string& value, const char* help,
                          const std::vector<std::string>& words) {
    const auto is_one = [=](const std::string& text) {
      return std::ranges::find(words, text) != words.end();
    };
    std::string all;
    for (const std::string& word : words)
      all += (all.empty() ? "" : word == words.back() ? " or " : ", ") + word;
    app.add_option(option, value, help)
        ->check(takes(all, is_one))
        ->capture_default_str()
        ->type_name("WORD");
  };
  if (chooses)
    choice("--model", options.model, "lstm (sunspots) or mlp (handwritten digits)",
           {"lstm", "mlp"});
  if (!program.compares)
    choice("--mode", mode, "graph (in a session), eager or compiled (a traced step)",
           {"graph", "eager", "compiled"});
  const CLI::Option* const device =
      app.add_option("--device", device_name,
                     "cpu, cuda, cuda:N, sim:PROFILE:SIZE (sim:h200:141GiB);\n"
                     "without it cuda where there is a GPU, else cpu")
          ->type_name("DEVICE");
  app.add_flag("--watch", options.watches,
               "Show the page in a browser meanwhile; the address is\nprinted")
      ->disable_flag_override();  // takes no port
  number("--epochs", options.epochs, "Passes over the training data");
  number("--batch", options.batch, "Samples that one update is made from");
  const auto is_count = [](std::string& text) {
    return text == "auto" || takes_number(1, kMost)(text).empty();
  };
  app.add_option("--accumulate", accumulate,
                 program.compares ? "Micro-batches of a batch, in the second table; or\n"
                                    "auto: in all, as few as --memory-limit allows"
                                  : "Micro-batches that a batch is cut into; auto: as\n"
                                    "few as --memory-limit allows")
      ->check(takes("auto or a whole number from 1 to " + std::to_string(kMost), is_count))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--memory-limit", options.memory_limit,
                 "The most that training may reserve, as in 64MiB")
      ->transform(takes_size())
      ->type_name("SIZE");
  number("--hidden", options.hidden, "Units of each hidden layer");
  number("--layers", options.layers, "Hidden layers");
  number("--length", options.length, "Values that the lstm sees; the mlp has none");
  number("--seed", options.seed, "Of initial values and shuffles", 0,
         std::numeric_limits<std::int64_t>::max());
  app.add_option("--data", options.data,
                 program.model == "lstm" ? "A CSV; its last column is the series"
                                         : "A CSV; its last column is learned (mlp:\n"
                                           "or MNIST's files IMAGES,LABELS)")
      ->type_name("FILE");
  app.add_option("--json", options.json, "Write the figures there")->type_name("FILE");
  app.add_option("--report", options.report, "Write a page there that shows the memory (HTML)")
      ->type_name("FILE");
  app.add_option("--tensorboard", options.tensorboard,
                 "Write loss and memory of each step there, in a folder\nfor each mode")
      ->type_name("FOLDER");
  if (!program.compares)
    add_files(app, options, "Save the run there after each epoch",
              "Go on with the run saved there, up to --epochs");

  if (!parse(app, argc, argv)) return {};

  options.mode = *std::ranges::find(kModes, mode, [](Mode each) { return name(each); });
  options.accumulates_to_fit = accumulate == "auto";
  options.accumulate = options.accumulates_to_fit ? 1 : std::stoll(accumulate);
  if (options.batch % options.accumulate != 0)
    throw BadArguments("--accumulate " + std::to_string(options.accumulate) +
                       " does not divide --batch " + std::to_string(options.batch));
  try {
    // Last, since looking for a GPU takes some of its memory.
    options.device = device->count() ? ebb::Device::parse(device_name, {}) : ebb::Device::best();
  } catch (const ebb::Error& error) {
    throw BadArguments(std::string("--device: ") + error.what());
  }
  const std::size_t comma = options.model == "lstm" ? std::string::npos : options.data.find(',');
  check_input("--data", options.data.substr(0, comma));
  if (comma != std::string::npos) check_input("--data", options.data.substr(comma + 1));
  if (!options.json.empty()) check_output("--json", options.json);
  if (!options.report.empty()) check_output("--report", options.report);
  if (fs::exists(options.tensorboard) && !fs::is_directory(options.tensorboard))
    throw BadArguments("--tensorboard " + options.tensorboard + ": that is no folder");
  check_files(options);
  return options;
}

}  // namespace

bool interrupted() noexcept { return is_interrupted; }

void add_positive(const char* name, double& value, const char* help) {
  own_arguments.push_back([=, &value](CLI::App& app) {
    app.add_option(name, value, help)
        ->check(takes("a number above 0",
                      [](const std::string& text) {
                        double number = 0;
                        return CLI::detail::lexical_cast(text, number) && number > 0 &&
                               std::isfinite(number);
                      }))
        ->capture_default_str()
        ->type_name("X");
  });
}

int run_example(int argc, const char* const* argv, const char* purpose,
                const std::function<int(const ebb::Device&)>& body) {
  return run_small(argc, argv, purpose, false,
                   [&](const Arguments& arguments) { return body(arguments.device); });
}

int train_example(int argc, const char* const* argv, const char* purpose,
                  const std::function<void(const Arguments&)>& body) {
  return run_small(argc, argv, purpose, true,
                   [&](const Arguments& arguments) { return body(arguments), 0; });
}

int run_program(int argc, const char* const* argv, const Program& program,
                const std::function<void(const Options&)>& body) {
  watch_for_interrupt();
  return run_main(program.name, [&] {
    if (const auto options = parse_options(argc, argv, program)) body(*options);
    return 0;
  });
}

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

void print_peak(std::size_t predicted, std::optional<std::size_t> measured) {
  std::printf("peak: %s predicted", ebb::memory::exact_figure(predicted).c_str());
  if (measured) std::printf(", %s measured", ebb::memory::exact_figure(*measured).c_str());
  std::printf("\n");
}

bool agrees(const char* what, const ebb::Tensor& result, const ebb::Tensor& torch) {
  const std::vector<double> a = result.to_vector<double>(), b = torch.to_vector<double>();
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  std::printf("%s: the largest difference from PyTorch is %.1g\n", what, largest);
  return largest <= 1e-5;
}

}  // namespace examples
