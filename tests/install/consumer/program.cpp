// Program that a Makefile builds with the flags from pkg-config.
#include <ebb/ebb.h>

#include <cstdio>

int main() {
  const ebb::Tensor a = ebb::Tensor::from({{1.f, 2.f}, {3.f, 4.f}}).with_grad();
  ebb::sum(ebb::matmul(a, a)).backward();
  const float found = a.grad().item<float>({0, 1});
  std::printf("%g\n", static_cast<double>(found));
  return found == 11 ? 0 : 1;
}
