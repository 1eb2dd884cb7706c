#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ebb/core/data/batch.h"
#include "ebb/core/data/samples.h"
#include "ebb/core/tensor/storage.h"

namespace ebb::detail {

// Memory for so many batches at a time, used again and again: slots, which are allocated when this
// is made. A batch that somebody still refers to keeps its memory.
class BatchMemory {
 public:
  // Batches of up to `rows` samples. Throws OutOfMemory.
  BatchMemory(const Samples& samples, std::int64_t rows, std::size_t slots, const Device& device,
              const memory::Tag& tag);

  // A batch whose values are not there yet, in a slot that nobody refers to; nothing where there is
  // none.
  std::optional<Batch> take_free(std::int64_t rows);
  // Likewise; where there is none, a slot gets new memory. Throws OutOfMemory, with nothing
  // changed.
  Batch take(std::int64_t rows);

 private:
  using Slot = std::vector<Ref<Storage>>;  // one for each field
  Ref<Storage> allocate(std::size_t field) const;
  Batch batch_in(const Slot& slot, std::int64_t rows) const;

  const Device device_;
  std::vector<Spec> fields_;
  std::vector<memory::Request> requests_;  // for each field
  std::vector<Slot> slots_;
  std::size_t next_ = 0;  // the one that was taken longest ago
};

}  // namespace ebb::detail
