// A user's operator that includes only the standard library and ebb. A failed check ends the
// program before its main.
#include <ebb/custom_operator.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct Thirds {
  static constexpr const char* name = "thirds";
  static ebb::Tensors gradient(const ebb::GradientContext& g) { return {g.take_dy() / 3}; }
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x / 3;
  }
};

const bool checked = [] {
  const ebb::Tensor x = ebb::Tensor::from({3.f, 6.f}).with_grad();
  const ebb::Tensor y = ebb::custom_operator(Thirds{}, x);
  ebb::sum(y * y).backward();
  if (y.to_vector<float>() == std::vector<float>{1, 2} && x.grad().item<float>({1}) > 1.3f &&
      x.grad().item<float>({1}) < 1.4f)
    return true;
  std::fprintf(stderr, "an operator of one's own computes something else\n");
  std::exit(3);
}();

}  // namespace
