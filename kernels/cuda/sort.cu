#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/order_key.h"
#include "ebb/kernels/cuda/plans/sort_plan.h"

namespace ebb::cuda {
namespace {

constexpr int kWord = 32;  // bits of a key that are sorted at once

template <class T>
constexpr int kKeyBits = 8 * sizeof(T);

template <class T>
struct SortedRows {
  const T* in;
  std::int64_t rows, size;
  bool descending;

  // A word of an element's key, word 0 being the lowest bits. Above the key stands `row`, so that
  // rows are sorted together. NaN stands last ascending and first descending.
  __device__ std::uint32_t word(std::int64_t element, std::uint32_t row, int word) const {
    const int row_at = kKeyBits<T> - kWord * word;
    if (row_at <= 0) return row;
    const Key<T> key = key_of(in[element], false);
    const std::uint64_t bits = descending ? static_cast<Key<T>>(~key) : key;
    const auto below = static_cast<std::uint32_t>(bits >> kWord * word);
    return row_at < kWord ? row << row_at | below : below;
  }
};

// Bits of a key with the number of one of some rows.
template <class T>
EBB_HOST_DEVICE int bits_with_row(std::int64_t rows) {
  int bits = kKeyBits<T>;
  for (; rows > 1; rows = (rows + 1) / 2) ++bits;
  return bits;
}

// Sorts tiles: short rows, many together, or pieces of long ones. Each row has `listed` indices,
// in `list` or (null) all of them, and keeps the first `count` of each of its tiles, `kept` in all.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sort_tiles_kernel(SortedRows<T> work, const std::int64_t* list, std::int64_t listed,
                      std::int64_t* out, std::int64_t count, std::int64_t kept) {
  constexpr int kEach = kSortTile / kThreads;
  using Sort = cub::BlockRadixSort<std::uint32_t, kThreads, kEach, int>;
  __shared__ typename Sort::TempStorage storage;
  const std::int64_t pieces = divide_up(listed, kSortTile);
  const std::int64_t together = pieces > 1 ? 1 : kSortTile / listed;
  for (std::int64_t tile = blockIdx.x; tile < divide_up(work.rows, together) * pieces;
       tile += gridDim.x) {
    const std::int64_t first_row = tile / pieces * together, piece = tile % pieces;
    const int size = static_cast<int>(min(listed - piece * kSortTile, std::int64_t{kSortTile}));
    const int there = static_cast<int>(min(together, work.rows - first_row)) * size;
    const auto index = [&](int entry) {
      const std::int64_t at = piece * kSortTile + entry % size;
      return list == nullptr ? at : list[(first_row + entry / size) * listed + at];
    };
    std::uint32_t words[kEach];
    int entries[kEach];
    for (int j = 0; j < kEach; ++j) entries[j] = static_cast<int>(threadIdx.x) * kEach + j;
    for (int word = 0, bits = bits_with_row<T>(together); bits > 0; ++word, bits -= kWord) {
      for (int j = 0; j < kEach; ++j) {
        const int entry = entries[j], row = entry / size;
        words[j] = entry < there ? work.word((first_row + row) * work.size + index(entry),
                                             static_cast<unsigned>(row), word)
                                 : ~0u;  // stays behind
      }
      Sort(storage).Sort(words, entries, 0, min(bits, kWord));
      __syncthreads();  // storage may still be read
    }
    for (int j = 0; j < kEach; ++j) {
      const int place = static_cast<int>(threadIdx.x) * kEach + j, at = place % size;
      if (place < there && at < count)
        out[(first_row + place / size) * kept + piece * count + at] = index(entries[j]);
    }
  }
}

// Writes a word of each element's key. Word 0 comes first and numbers the elements.
template <class T>
__global__ void key_words_kernel(SortedRows<T> work, int word, std::uint32_t* words,
                                 std::uint32_t* elements) {
  const auto size = static_cast<std::uint32_t>(work.size);
  for (std::int64_t i = grid_thread(); i < work.rows * work.size; i += grid_threads()) {
    if (word == 0) elements[i] = static_cast<std::uint32_t>(i);
    words[i] = work.word(elements[i], elements[i] / size, word);
  }
}

// Writes the first `count` of each row's sorted elements, as indices within the row.
__global__ void write_first_kernel(const std::uint32_t* elements, std::int64_t rows,
                                   std::int64_t size, std::int64_t count, std::int64_t* out) {
  for (std::int64_t i = grid_thread(); i < rows * count; i += grid_threads()) {
    const std::int64_t row = i / count, begin = row * size;
    out[i] = elements[begin + i - row * count] - begin;
  }
}

// Sorts by the low `bits` bits of words. Without workspace CUB only says how many bytes it wants.
Status sort_pairs(void* workspace, std::size_t& bytes, cub::DoubleBuffer<std::uint32_t>& words,
                  cub::DoubleBuffer<std::uint32_t>& elements, std::int64_t pairs, int bits,
                  cudaStream_t stream) noexcept {
  return answer(cub::DeviceRadixSort::SortPairs(workspace, bytes, words, elements,
                                                static_cast<std::uint32_t>(pairs), 0, bits, stream),
                "CUB could not sort");
}

// Sorts words of the keys from the lowest to the highest. A sort keeps the order of equal words.
template <class T>
Status sort_by_radix(const KernelContext& context, SortedRows<T> work,
                     const SortPlan& plan) noexcept {
  cudaStream_t stream = stream_of(context);
  auto* const workspace = static_cast<std::uint32_t*>(context.workspace);
  auto* out = context.outputs[0].as<std::int64_t>();
  if (plan.size > 0x7FFFFFFF)
    return Status::refuse("sorts no more than 2,147,483,647 elements of a row");
  if (cub_sort_wants(plan.pairs()) > cub_sort_bytes(plan.pairs()))
    return Status::refuse("CUB wants more workspace than is declared");
  Status status;
  for (std::int64_t left = plan.rows; status.ok() && left > 0; left -= work.rows) {
    work.rows = std::min(left, plan.rows_together());
    const std::int64_t pairs = work.rows * plan.size;
    std::uint32_t* const room =
        plan.arrays() == 4 ? workspace + 2 * pairs : reinterpret_cast<std::uint32_t*>(out);
    cub::DoubleBuffer<std::uint32_t> elements(workspace, workspace + pairs),
        words(room, room + pairs);
    std::size_t bytes = cub_sort_bytes(pairs);
    int bits = bits_with_row<T>(work.rows);
    for (int word = 0; status.ok() && bits > 0; ++word, bits -= kWord) {
      status = launch(stream, key_words_kernel<T>, blocks_for(pairs), kThreads, work, word,
                      words.Current(), elements.Current());
      if (status.ok())
        status = sort_pairs(workspace + plan.arrays() * pairs, bytes, words, elements, pairs,
                            std::min(bits, kWord), stream);
    }
    if (status.ok())
      status = launch(stream, write_first_kernel, blocks_for(work.rows * plan.count), kThreads,
                      elements.Current(), work.rows, plan.size, plan.count, out);
    work.in += pairs;
    out += work.rows * plan.count;
  }
  status.refused = false;  // earlier launches have written
  return status;
}

// Sorts tiles, then tiles of the indices that are left, until they are a tile for each row.
template <class T>
Status sort_by_tiles(const KernelContext& context, const SortedRows<T>& work,
                     const SortPlan& plan) noexcept {
  auto* workspace = static_cast<std::int64_t*>(context.workspace);
  const std::int64_t* list = nullptr;
  Status status;
  for (std::int64_t listed = plan.size, kept = 0; status.ok() && kept != plan.count;
       listed = kept) {
    kept = plan.kept(listed);
    const std::int64_t tiles = listed > kSortTile ? plan.rows * divide_up(listed, kSortTile)
                                                  : divide_up(plan.rows, kSortTile / listed);
    std::int64_t* const to = listed > kSortTile ? workspace : context.outputs[0].as<std::int64_t>();
    status = launch(stream_of(context), sort_tiles_kernel<T>, blocks_for(tiles, 1), kThreads, work,
                    list, listed, to, plan.count, kept);
    list = to;
    workspace += plan.rows * kept;
  }
  return status;
}

}  // namespace

std::size_t cub_sort_wants(std::int64_t pairs) noexcept {
  cub::DoubleBuffer<std::uint32_t> none(nullptr, nullptr);
  std::size_t bytes = 0;
  return sort_pairs(nullptr, bytes, none, none, pairs, kWord, nullptr).ok() ? bytes : 0;
}

Status argsort(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const std::int64_t count = out.spec.shape.dim(-1);
  const SortPlan plan{out.elements() / count, in.spec.shape.dim(-1), count};
  const bool descending = context.attribute<SortAttributes>().descending != 0;
  return for_stored(in.spec.dtype, [&]<class T>(T) {
    const SortedRows<T> work{in.as<const T>(), plan.rows, plan.size, descending};
    return plan.by_tiles() ? sort_by_tiles(context, work, plan)
                           : sort_by_radix(context, work, plan);
  });
}

}  // namespace ebb::cuda
