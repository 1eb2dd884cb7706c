// A session that lends its memory to others for a while.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

Session::Impl::Suspended::~Suspended() {
  if (!file.empty()) std::remove(file.c_str());
}

std::vector<std::size_t> Session::Impl::variables_with_memory() const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (variables.has_memory(i)) indices.push_back(i);
  return indices;
}

memory::CloseReport Session::Impl::suspend(const std::string* file) {
  const Lock lock(*this);
  if (suspended) return {};
  require_open();
  auto kept = std::make_unique<Suspended>();
  if (!device.is_simulated()) {
    std::ofstream stream;
    if (file) {
      if (std::filesystem::exists(*file))
        throw FileError("[suspend] " + *file +
                        " is there already, and would be removed by resume()");
      stream.open(*file, std::ios::binary | std::ios::trunc);
      if (!stream) throw FileError("[suspend] cannot write " + *file);
      kept->file = *file;
    }
    if (!file) kept->values.reserve(variables.parameter_bytes() + variables.slot_bytes());
    for (const std::size_t index : variables_with_memory()) {
      const HostView view = variables.view(index);
      const std::size_t bytes = variables.declaration(index).spec.bytes();
      if (file)
        stream.write(reinterpret_cast<const char*>(view.data()),
                     static_cast<std::streamsize>(bytes));
      else
        kept->values.insert(kept->values.end(), view.data(), view.data() + bytes);
    }
    if (file && !stream.flush()) throw FileError("[suspend] cannot write " + *file);
  }
  suspended = std::move(kept);
  is_suspended = true;
  const memory::CloseReport report = pool->suspend();
  if (detail::logs_debug())
    detail::log_debug("session: suspended, " + memory::format_bytes(report.returned_bytes) +
                      " went back to the device");
  return report;
}

void Session::Impl::resume() {
  const Lock lock(*this);
  if (closed) throw SessionClosed("[Session] this session is closed");
  if (!suspended) return;
  std::ifstream stream;
  if (!suspended->file.empty()) {
    stream.open(suspended->file, std::ios::binary);
    if (!stream) throw FileError("[resume] cannot read " + suspended->file);
  }
  try {
    pool->resume();  // and calls those who watch: where one throws, the memory is there already
    if (!device.is_simulated()) {
      std::vector<std::byte> read;
      const std::byte* at = suspended->values.data();
      for (const std::size_t index : variables_with_memory()) {
        const std::size_t bytes = variables.declaration(index).spec.bytes();
        if (stream.is_open()) {
          read.resize(bytes);
          if (!stream.read(reinterpret_cast<char*>(read.data()),
                           static_cast<std::streamsize>(bytes)))
            throw FileError("[resume] " + suspended->file + " ends too early");
          at = read.data();
        }
        device.runtime().copy_in(this->stream.get(), variables.data(index), at, bytes);
        if (!stream.is_open()) at += bytes;
      }
    }
  } catch (...) {
    pool->suspend();
    throw;
  }
  ++resumes;
  is_suspended = false;
  suspended.reset();
}

}  // namespace ebb
