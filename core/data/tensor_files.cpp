#include "ebb/core/data/tensor_files.h"

#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/host_values.h"
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

template <class File>
TensorsByName load_all(const std::string& name, const Device& device, const char* what) {
  const File file(name);
  TensorsByName tensors;
  for (const auto& entry : file.entries())
    tensors.emplace(entry.name, make_tensor(entry.spec, device, what,
                                            [&](void* values) { file.read(entry.name, values); }));
  return tensors;
}

// What is read of a simulated tensor is made up, and no file may have it.
void require_real_values(const Tensor& tensor, const char* what, const std::string& which) {
  detail::require_values(tensor, what, which);
  if (tensor.device().is_simulated())
    detail::refuse<SimulatedRead>(
        what, which + " has no values to save, since its device is simulated: it is " +
                  tensor.to_string());
}

// Host views of tensors, in the form that file writers take.
struct Views {
  Views(const TensorsByName& tensors, const char* what) {
    for (const auto& [name, tensor] : tensors) {
      require_real_values(tensor, what, "'" + name + "'");
      values.push_back(detail::values_of(tensor));
      views.push_back({name, tensor.impl()->spec, values.back().data()});
    }
  }
  std::vector<HostView> values;
  std::vector<safetensors::View> views;
};

}  // namespace

Tensor load_npy(const std::string& name, const Device& device, CallSite site) {
  const detail::CallSiteScope at(site);
  const npy::File file(name);
  return make_tensor(file.spec(), device, "load_npy", [&](void* values) { file.read(values); });
}

void save_npy(const std::string& file, const Tensor& tensor, CallSite site) {
  const detail::CallSiteScope at(site);
  require_real_values(tensor, "save_npy", "the tensor");
  npy::write(file, tensor.impl()->spec, detail::values_of(tensor).data());
}

TensorsByName load_npz(const std::string& file, const Device& device, CallSite site) {
  const detail::CallSiteScope at(site);
  return load_all<npz::File>(file, device, "load_npz");
}

void save_npz(const std::string& file, const TensorsByName& tensors, CallSite site) {
  const detail::CallSiteScope at(site);
  npz::write(file, Views(tensors, "save_npz").views);
}

TensorsByName load_safetensors(const std::string& file, const Device& device, CallSite site) {
  const detail::CallSiteScope at(site);
  return load_all<safetensors::File>(file, device, "load_safetensors");
}

void save_safetensors(const std::string& file, const TensorsByName& tensors, CallSite site) {
  const detail::CallSiteScope at(site);
  safetensors::write(file, Views(tensors, "save_safetensors").views);
}

}  // namespace ebb
