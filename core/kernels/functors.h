#pragma once
#include <cmath>

// Pointwise arithmetic, written once: X is a scalar, or in kernels/cpu a vector of scalars, whose
// functions are found by argument. X{} is zero.

#if defined(__CUDACC__)
#define EBB_HOST_DEVICE __host__ __device__
#else
#define EBB_HOST_DEVICE
#endif

namespace ebb::functors {

struct Negate {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return -x;
  }
};
struct Square {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x * x;
  }
};
struct Sqrt {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::sqrt;
    return sqrt(x);
  }
};
struct Exp {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::exp;
    return exp(x);
  }
};
struct Log {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::log;
    return log(x);
  }
};
struct Tanh {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::tanh;
    return tanh(x);
  }
};
// Written so, it is as accurate as exp at both ends.
struct Sigmoid {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::exp;
    return 1 / (1 + exp(-x));
  }
};
// max(x, 0); NaN stays NaN, the gradient at 0 is 0.
struct Relu {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x < X{} ? X{} : x;
  }
};

struct Add {
  template <class X, class Y>
  EBB_HOST_DEVICE auto operator()(const X& x, const Y& y) const {
    return x + y;
  }
};
struct Subtract {
  template <class X, class Y>
  EBB_HOST_DEVICE auto operator()(const X& x, const Y& y) const {
    return x - y;
  }
};
struct Multiply {
  template <class X, class Y>
  EBB_HOST_DEVICE auto operator()(const X& x, const Y& y) const {
    return x * y;
  }
};
struct Divide {
  template <class X, class Y>
  EBB_HOST_DEVICE auto operator()(const X& x, const Y& y) const {
    return x / y;
  }
};
// dy where y > 0, else 0: the gradient of relu from its output.
struct ReluGradient {
  template <class X, class Y>
  EBB_HOST_DEVICE auto operator()(const X& dy, const Y& y) const {
    return y > Y{} ? dy : X{};
  }
};

}  // namespace ebb::functors
