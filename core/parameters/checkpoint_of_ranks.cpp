#include "ebb/core/parameters/checkpoint_of_ranks.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/interned.h"
#include "ebb/core/device/host_bytes.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/files/output_file.h"

namespace ebb::detail {

namespace {

using safetensors::View;

// Does this rank's part of the work. Throws on all ranks where that throws on one.
void together(WorldState& world, const std::string& file, const std::function<void()>& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  const std::vector<std::int64_t> done = world.exchange("save to " + file, error ? 0 : 1);
  if (error) std::rethrow_exception(error);
  const auto failed = std::ranges::find(done, 0) - done.begin();
  if (failed < world.size())
    refuse<FileError>("save",
                      "rank " + std::to_string(failed) + " cannot write its part of " + file);
}

HostBytes collect(WorldState& world, const SavedValue& value, View& whole) {
  HostBytes bytes(whole.spec.bytes(), "save", "a tensor of which the ranks have shares");
  whole.values = bytes.data();
  const auto own = share_in({bytes.data(), whole.spec}, world.size(), world.rank());
  std::copy_n(static_cast<const std::byte*>(value.values), own.size(), own.data());
  const Status status = world.size() > 1 ? world.run(collecting(whole)) : Status{};
  if (!status.ok()) refuse("save", status.problem);
  return bytes;
}

void remove_file(const std::filesystem::path& file) noexcept {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

// Files of the checkpoint that is there now.
std::vector<std::string> files_of(const std::string& checkpoint) {
  try {
    return safetensors::File(checkpoint).parts();
  } catch (const FileError&) {
    return {};  // there is none
  }
}

void write_parts(WorldState& world, const std::string& file, std::span<const SavedValue> values,
                 const safetensors::Metadata& metadata) {
  const std::filesystem::path path = file;
  const std::int64_t number = world.exchange("save to " + file, std::random_device()())[0];
  const auto part = [&](std::size_t rank) {
    char text[48];
    std::snprintf(text, sizeof text, "-%08x-%05zu-of-%05d", static_cast<unsigned>(number), rank + 1,
                  world.size());
    return path.stem().string() + text + path.extension().string();
  };
  const std::size_t rank = static_cast<std::size_t>(world.rank());
  // Tensors in shares go to the rank with the fewest bytes so far; rank 0's own are the others.
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(world.size()));
  std::uint64_t all = 0;
  std::map<std::string, std::string> parts;
  std::vector<View> mine;
  std::vector<HostBytes> collected;
  try {
    for (const SavedValue& value : values) {
      const auto least = value.whole ? std::ranges::min_element(bytes) : bytes.begin();
      const auto writer = static_cast<std::size_t>(least - bytes.begin());
      View whole = value;
      if (value.whole) whole.spec.shape = *value.whole;
      if (value.whole) *least += whole.spec.bytes();  // which all ranks know
      all += whole.spec.bytes();
      parts.emplace(value.name, part(writer));
      HostBytes held = value.whole ? collect(world, value, whole) : HostBytes();
      if (writer != rank) continue;
      collected.push_back(std::move(held));
      mine.push_back(whole);
    }
  } catch (const std::exception& error) {
    world.fail(error.what());
    throw;
  }
  const std::filesystem::path own = path.parent_path() / part(rank);
  try {
    together(world, file, [&] {
      if (rank == 0 || !mine.empty())
        safetensors::write(own.string(), mine, rank == 0 ? metadata : safetensors::Metadata());
    });
    together(world, file, [&] {
      if (rank > 0) return;
      OutputFile::check(file);
      const std::vector<std::string> old = files_of(file);
      safetensors::write_index(file, parts, all);
      for (const std::string& name : old) remove_file(name);
    });
  } catch (const std::exception&) {
    remove_file(own);
    throw;
  }
}

}  // namespace

Collective collecting(const View& value) {
  Collective collective;
  collective.kind = Collective::all_gather;
  collective.spec = value.spec;
  collective.sum_dtype = value.spec.dtype;
  collective.name = interned('\'' + value.name + '\'');
  collective.where = interned(at(entry()));
  collective.from = collective.to = const_cast<void*>(value.values);
  return collective;
}

void write_with_ranks(const distributed::World& world, const std::string& file,
                      std::span<const SavedValue> values, const safetensors::Metadata& metadata) {
  if (file.ends_with(safetensors::kIndexSuffix))
    refuse<FileError>("save", file + " is the name of an index; a checkpoint has it without \"" +
                                  std::string(safetensors::kIndexSuffix) + '"');
  const bool has_shares =
      std::ranges::any_of(values, [](const SavedValue& value) { return value.whole.has_value(); });
  if (has_shares) return write_parts(world.state(), file, values, metadata);
  together(world.state(), file, [&] {
    if (world.rank() == 0)
      safetensors::write(file, std::vector<View>(values.begin(), values.end()), metadata);
  });
}

}  // namespace ebb::detail
