#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ebb/core/data/batch.h"
#include "ebb/core/data/samples.h"
#include "ebb/core/tensor/storage.h"

namespace ebb::detail {

// Memory for a number of batches, used again and again, in slots that are allocated on
// construction. A batch that somebody still refers to keeps its memory.
class BatchMemory {
 public:
  // Batches of up to `rows` samples. Throws OutOfMemory.
  BatchMemory(const Samples& samples, std::int64_t rows, std::size_t slots, const Device& device,
              const memory::Tag& tag);

  // A batch without values in a slot that nobody refers to, or nothing if all slots are in use.
  std::optional<Batch> take_free(std::int64_t rows);
  // Like take_free(), but if all slots are in use, one gets new memory. Throws OutOfMemory, with
  // nothing changed.
  Batch take(std::int64_t rows);

 private:
  using Slot = std::vector<Ref<Storage>>;  // one for each field
  Ref<Storage> allocate(std::size_t field) const;
  Batch batch_in(const Slot& slot, std::int64_t rows) const;

  const Device device_;
  std::vector<Spec> fields_;
  std::vector<memory::Request> requests_;  // for each field
  std::vector<Slot> slots_;
  std::size_t next_ = 0;  // the slot taken longest ago
};

}  // namespace ebb::detail
