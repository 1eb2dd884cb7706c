#include <algorithm>
#include <set>

#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests {

TEST_CASE("Every operator has a sample") {
  const std::vector<Sample> samples = all_samples(DType::f32);
  for (const OpDef* op : every_operator()) {
    INFO(op->name);
    CHECK(std::any_of(samples.begin(), samples.end(),
                      [&](const Sample& sample) { return sample.op == op; }));
  }
}

TEST_CASE("Every sample is of a listed operator, and applies it") {
  const auto all = every_operator();
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype)) {
      INFO(sample.name);
      CHECK(std::find(all.begin(), all.end(), sample.op) != all.end());
      CHECK_NOTHROW(RecordedSample(sample, dtype, true).node());
    }
}

TEST_CASE("No operator is listed twice, and no two samples have one name") {
  const auto all = every_operator();
  CHECK(std::set<const OpDef*>(all.begin(), all.end()).size() == all.size());
  std::set<std::string> names;
  for (const Sample& sample : all_samples(DType::f32)) {
    INFO(sample.name);
    CHECK(names.insert(sample.name).second);
  }
}

TEST_CASE("Every operator is complete: a shape rule, and a kernel unless it is a view") {
  for (const OpDef* op : every_operator()) {
    INFO(op->name);
    CHECK(op->infer != nullptr);
    CHECK((op->cpu.run != nullptr) == (op->view == nullptr));
    CHECK((op->cuda.run != nullptr) == (op->view == nullptr));
    CHECK_FALSE((op->gradient && op->compose));
    // What is only looked at for its shape is neither kept, used up nor updated.
    CHECK((op->shape_only & op->keeps.inputs).empty());
    CHECK((op->shape_only & (op->takes_over | op->destroys | op->updates)).empty());
    // One way only to use an input's memory.
    CHECK((op->destroys & (op->takes_over | op->updates)).empty());
    // An operator that writes in place is never merged, folded or reordered.
    CHECK((op->updates.empty() || op->stateful));
    CHECK((op->updates.empty() || op->updates.has(0)));
  }
}

}  // namespace ebb::tests
