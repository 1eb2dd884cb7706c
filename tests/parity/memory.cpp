// Memory figures, limits and release.
#include "ebb/core/device/runtime.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

using namespace ebb::literals;

// A simulated CPU of 64 MiB that holds nothing else, whichever device the tests run on.
Device device() { return Runtime::make_simulated({}, 64_MiB); }
Tensor mebibytes(std::int64_t size, const Device& device) {
  return Tensor::zeros({size << 18}, DType::f32, device);
}
memory::Figure allocated(const Device& d) { return memory::stats(d).allocated; }

// A program with 1 MiB of parameters and a scalar to fetch.
struct Program {
  Graph graph;
  Parameters params{graph, Seed{1}};
  Tensor w = params.declare("w", {1 << 18}, initializers::zeros());
  Tensor total = sum(w);
};

}  // namespace

EBB_PROGRAM("torch.cuda.memory_allocated(d), torch.cuda.max_memory_allocated(d)") {
  const Device d = device();
  { const Tensor gone = mebibytes(3, d); }
  const Tensor kept = mebibytes(1, d);
  CHECK(memory::stats(d).allocated.current == 1_MiB);
  CHECK(memory::stats(d).allocated.peak == 3_MiB);
}
EBB_PROGRAM("torch.cuda.reset_peak_memory_stats(d)") {
  const Device d = device();
  { const Tensor gone = mebibytes(3, d); }
  memory::reset_peaks(d);
  CHECK(allocated(d).peak == 0);
  memory::PeakScope peak(d);
  { const Tensor gone = mebibytes(2, d); }
  CHECK(peak.bytes() == 2_MiB);
}
EBB_PROGRAM("torch.cuda.memory_reserved(d), torch.cuda.empty_cache()") {
  const Device d = device();
  { const Tensor gone = mebibytes(3, d); }
  CHECK(allocated(d).current == 0);
  CHECK(memory::stats(d).reserved.current >= 3_MiB);
  CHECK(memory::release_cached(d).returned_bytes >= 3_MiB);
  CHECK(memory::stats(d).reserved.current == 0);
}
EBB_PROGRAM("torch.cuda.memory_summary(d), torch.cuda.memory_stats(d)") {
  const Device d = device();
  const Tensor kept = mebibytes(1, d);
  CHECK(memory::summary(d).find("1.0 MiB") != std::string::npos);
  CHECK(memory::summary_json(d).find("\"allocated_bytes\"") != std::string::npos);
  CHECK(memory::holders(d)[0].bytes == 1_MiB);
}
EBB_PROGRAM("torch.cuda.set_per_process_memory_fraction(0.5, d)") {
  const Device d = device();
  memory::set_limit(d, memory::Limit::fraction(0.5));
  CHECK(memory::stats(d).limit == 32_MiB);
  memory::set_limit(d, 4_MiB);
  CHECK(memory::stats(d).limit == 4_MiB);
}
EBB_PROGRAM("torch.cuda.mem_get_info(d)") {
  const Device d = device();
  const Tensor kept = mebibytes(4, d);
  CHECK(memory::stats(d).device_total == 64_MiB);
  CHECK(memory::stats(d).device_free <= 60_MiB);
  CHECK(memory::available(d) == 60_MiB);
}
EBB_PROGRAM("except torch.cuda.OutOfMemoryError:") {
  const Device d = Device::cpu();
  const std::size_t before = memory::stats(d).allocated.current;
  memory::set_limit(d, memory::stats(d).reserved.current + 4_MiB);
  bool refused = false;
  try {
    mebibytes(4096, d);
  } catch (const OutOfMemory& error) {
    refused = error.requested_bytes() == 4_GiB;
  }
  memory::set_limit(d, std::nullopt);
  CHECK(refused);
  CHECK(memory::stats(d).allocated.current == before);
}
EBB_PROGRAM("torch.cuda.memory._record_memory_history(), _dump_snapshot(f)") {
  const TemporaryFolder folder;
  const Device d = device();
  memory::Recording recording(d);
  { const Tensor gone = mebibytes(1, d); }
  CHECK(recording.events().size() >= 2);
  recording.write_pytorch_snapshot(folder.path("memory.pickle"));
  CHECK(contents_of(folder.path("memory.pickle")).find("device_traces") != std::string::npos);
}
EBB_PROGRAM("del x") {
  const Device d = device();
  Tensor x = mebibytes(1, d);
  x = Tensor();
  CHECK(allocated(d).current == 0);
}
EBB_PROGRAM("per_process_gpu_memory_fraction=0.5") {
  const Program program;
  const Device d = device();
  Session session(program.graph, {.device = d, .memory_limit = memory::Limit::fraction(0.5)});
  CHECK(session.stats().limit == 32_MiB);
  Session small(program.graph, {.device = d, .memory_limit = 64_KiB});
  CHECK_ERROR(small.initialize(), OutOfMemory, "");
}
EBB_PROGRAM("allow_growth=True, allow_growth=False") {
  const Program program;
  const Device d = device();
  Session grows(program.graph, {.device = d});
  CHECK(grows.stats().reserved.current == 0);
  grows.close();
  Session whole(program.graph,
                {.device = d, .memory_limit = 16_MiB, .growth = memory::Growth::preallocate});
  CHECK(whole.stats().reserved.current == 16_MiB);
}
EBB_PROGRAM("tf1.Session.close()") {
  const Program program;
  const Device d = device();
  Session session(program.graph, {.device = d});
  session.initialize();
  session.run(program.total);
  const memory::CloseReport report = session.close();
  CHECK(report.returned_bytes >= 1_MiB);
  memory::release_cached(d);  // frees the shared cache that held the fetch
  CHECK(memory::stats(d).reserved.current == 0);
}
EBB_PROGRAM("tf.config.experimental.get_memory_info(d), reset_memory_stats(d)") {
  const Device d = device();
  const Tensor kept = mebibytes(1, d);
  CHECK(memory::stats(d).allocated.current == 1_MiB);
  memory::reset_peaks(d);
  CHECK(memory::stats(d).allocated.peak == 1_MiB);
}
EBB_PROGRAM("tf.contrib.memory_stats.BytesInUse(), MaxBytesInUse(), BytesLimit()") {
  const Program program;
  const Tensor used = memory::bytes_in_use(program.total),
               most = memory::max_bytes_in_use(program.total);
  const Tensor limit = memory::bytes_limit(program.total);
  Session session(program.graph);
  session.initialize();
  auto [now, peak, bound] = session.run({used, most, limit});
  CHECK(numbers(now)[0] >= static_cast<double>(1_MiB));
  CHECK(numbers(peak)[0] >= numbers(now)[0]);
  CHECK(numbers(bound)[0] >= numbers(now)[0]);
}
EBB_PROGRAM("the peak of a step, before it runs") {
  const Program program;
  const Device d = device();
  const memory::Plan plan = program.graph.plan({program.total}, {}, d);
  Session session(program.graph, {.device = d});
  session.initialize();
  session.run(program.total);
  CHECK(session.stats().allocated.peak == plan.peak_bytes);
  const memory::Prediction eager = memory::predict(d, [](Device twin) {
    const Tensor x = mebibytes(1, twin);
    const Tensor y = x + 1;
  });
  CHECK(eager.peak_bytes == 2_MiB);
}
EBB_PROGRAM("torch.backends.cuda.matmul.allow_tf32 = True") {
  CHECK_FALSE(is_tf32_allowed());
  allow_tf32(true);
  CHECK(is_tf32_allowed());
  allow_tf32(false);
}

}  // namespace ebb::tests::parity
