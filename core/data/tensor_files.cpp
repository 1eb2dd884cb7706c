#include "ebb/core/data/tensor_files.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ebb/core/data/host_values.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/files/npy.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

namespace {

// Makes a tensor; read(host pointer) fills it.
template <class Read>
Tensor make_tensor(const Spec& spec, const Device& device, const char* what, const Read& read) {
  Tensor tensor = detail::allocate(spec, device, detail::tape_mode().category,
                                   detail::tag(what, detail::entry()));
  tensor.impl()->storage->write(0, tensor.bytes(), read);
  return tensor;
}

// Finds a file that the program of a prediction on `device` has saved; nothing if there is none.
std::optional<safetensors::File> remembered(const std::string& name, const Device& device) {
  const auto simulation = device.runtime().simulation();
  const auto header = simulation ? simulation->saved(name) : std::nullopt;
  return header ? std::optional(safetensors::File::of_header(*header)) : std::nullopt;
}

template <class File>
TensorsByName load_all(const std::string& name, const Device& device, const char* what) {
  TensorsByName tensors;
  const auto load = [&](const auto& file) {
    for (const auto& entry : file.entries())
      tensors.emplace(entry.name, make_tensor(entry.spec, device, what, [&](void* values) {
                        file.read(entry.name, values);
                      }));
  };
  if (const auto saved = remembered(name, device))
    load(*saved);
  else
    load(File(name));
  return tensors;
}

// Tensors to be saved, in the form that file writers take.
struct Views {
  Views(const TensorsByName& tensors, const char* what) {
    for (const auto& [name, tensor] : tensors) {
      detail::require_values(tensor, what, name.empty() ? "the tensor" : "'" + name + "'", true);
      if (auto simulation = tensor.device().runtime().simulation())
        prediction = std::move(simulation);
      values.push_back(detail::values_of(tensor));
      views.push_back({name, tensor.impl()->spec, values.back().data()});
    }
  }
  std::shared_ptr<detail::Simulation> prediction;  // null if all tensors have values
  std::vector<HostView> values;
  std::vector<safetensors::View> views;
};

}  // namespace

Tensor load_npy(const std::string& name, const Device& device, CallSite site) {
  const detail::CallSiteScope at(site);
  if (const auto saved = remembered(name, device))
    return make_tensor(saved->entries().at(0).spec, device, "load_npy", [](void*) {});
  const npy::File file(name);
  return make_tensor(file.spec(), device, "load_npy", [&](void* values) { file.read(values); });
}

void save_npy(const std::string& file, const Tensor& tensor, CallSite site) {
  const detail::CallSiteScope at(site);
  const Views saved({{"", tensor}}, "save_npy");
  const safetensors::View& array = saved.views[0];
  if (!saved.prediction) return npy::write(file, array.spec, array.values);
  npy::check_write(file, array.spec);
  saved.prediction->save(file, safetensors::check_write(file, saved.views));
}

TensorsByName load_npz(const std::string& file, const Device& device, CallSite site) {
  const detail::CallSiteScope at(site);
  return load_all<npz::File>(file, device, "load_npz");
}

void save_npz(const std::string& file, const TensorsByName& tensors, CallSite site) {
  const detail::CallSiteScope at(site);
  const Views saved(tensors, "save_npz");
  if (!saved.prediction) return npz::write(file, saved.views);
  npz::check_write(file, saved.views);
  saved.prediction->save(file, safetensors::check_write(file, saved.views));
}

TensorsByName load_safetensors(const std::string& file, const Device& device, CallSite site) {
  const detail::CallSiteScope at(site);
  return load_all<safetensors::File>(file, device, "load_safetensors");
}

void save_safetensors(const std::string& file, const TensorsByName& tensors, CallSite site) {
  const detail::CallSiteScope at(site);
  const Views saved(tensors, "save_safetensors");
  if (!saved.prediction) return safetensors::write(file, saved.views);
  saved.prediction->save(file, safetensors::check_write(file, saved.views));
}

}  // namespace ebb
