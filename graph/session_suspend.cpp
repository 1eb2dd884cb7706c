// Suspending a session, which lends its memory to others for a while.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/files/input_file.h"
#include "ebb/core/files/output_file.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

namespace {

// Bytes that pass through the host at a time on their way to or from a file: few enough to be
// always available.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Continues a digest over the next piece. Every step is invertible, so texts that differ in one
// word have different digests; other pairs collide with probability 2^-64.
std::uint64_t digest_of(std::uint64_t digest, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  digest += bytes;
  while (bytes > 0) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(bytes, sizeof word);
    std::memcpy(&word, from, taken);
    digest = std::rotl((digest ^ word) * kFactor, 29);
    from += taken;
    bytes -= taken;
  }
  return digest;
}

}  // namespace

Session::Impl::Suspended::~Suspended() {
  if (!file.empty()) std::remove(file.c_str());
}

template <class Call>
void Session::Impl::for_each_piece(std::size_t most, const Call& call) const {
  for (std::size_t index = 0; index < variables.size(); ++index) {
    if (!variables.has_memory(index) || variables.is_on_host(index)) continue;
    const std::size_t bytes = variables.declaration(index).spec.bytes();
    for (std::size_t at = 0; at < bytes; at += std::min(most, bytes - at))
      call(variables.data(index) + at, std::min(most, bytes - at));
  }
}

void Session::Impl::write_values(Suspended& to) const {
  Runtime& runtime = device.runtime();
  constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();
  if (to.file.empty()) {
    std::size_t total = 0;
    for_each_piece(kWhole, [&](const std::byte*, std::size_t bytes) { total += bytes; });
    to.values = HostBytes(total, "suspend", "the values of a session that is suspended",
                          "suspend(file) needs no memory of the host");
    std::byte* at = to.values.data();
    for_each_piece(kWhole, [&](const std::byte* from, std::size_t bytes) {
      runtime.copy_out(stream.get(), at, from, bytes);
      at += bytes;
    });
    return;
  }
  const std::string file = std::exchange(to.file, {});  // set again once the file is ours to remove
  detail::ScratchFile out(file);
  to.file = file;
  HostBytes piece(runtime.is_host() ? 0 : kPieceBytes, "suspend", "a piece of a value");
  for_each_piece(kPieceBytes, [&](const std::byte* from, std::size_t bytes) {
    if (!runtime.is_host()) {
      runtime.copy_out(stream.get(), piece.data(), from, bytes);
      from = piece.data();
    }
    out.write(from, bytes);
    to.digest = digest_of(to.digest, from, bytes);
  });
  out.close();
}

void Session::Impl::read_values(const Suspended& from, const detail::InputFile* file) const {
  Runtime& runtime = device.runtime();
  if (!file) {
    const std::byte* at = from.values.data();
    for_each_piece(std::numeric_limits<std::size_t>::max(), [&](std::byte* to, std::size_t bytes) {
      runtime.copy_in(stream.get(), to, at, bytes);
      at += bytes;
    });
    return;
  }
  HostBytes piece(runtime.is_host() ? 0 : kPieceBytes, "resume", "a piece of a value");
  std::uint64_t offset = 0, digest = 0;
  for_each_piece(kPieceBytes, [&](std::byte* to, std::size_t bytes) {
    std::byte* const read = runtime.is_host() ? to : piece.data();
    file->read(offset, read, bytes);
    digest = digest_of(digest, read, bytes);
    offset += bytes;
    if (!runtime.is_host()) runtime.copy_in(stream.get(), to, read, bytes);
  });
  if (digest != from.digest)
    detail::refuse<FileError>(
        "resume",
        from.file + " does not hold what suspend() has written: somebody has changed it since");
}

memory::CloseReport Session::Impl::suspend(const std::string* file) {
  const Lock lock(*this);
  if (suspended) return {};
  require_open();
  auto kept = std::make_unique<Suspended>();
  if (!device.is_simulated()) {
    if (file) kept->file = *file;
    write_values(*kept);
  }
  suspended = std::move(kept);
  is_suspended = true;
  arena.give_up_host();
  const memory::CloseReport report = pool->suspend();
  if (detail::logs_debug())
    detail::log_debug("session: suspended, " + memory::format_bytes(report.returned_bytes) +
                      " went back to the device");
  return report;
}

void Session::Impl::resume() {
  const Lock lock(*this);
  if (closed) detail::refuse<SessionClosed>("Session", "this session is closed");
  if (!suspended) return;
  std::optional<detail::InputFile> file;
  if (!suspended->file.empty()) file.emplace(suspended->file);
  try {
    pool->resume();  // also makes watch calls: if one throws, the memory is back already
    if (!device.is_simulated()) read_values(*suspended, file ? &*file : nullptr);
  } catch (...) {
    pool->suspend();
    throw;
  }
  ++moves;
  is_suspended = false;
  suspended.reset();
}

}  // namespace ebb
