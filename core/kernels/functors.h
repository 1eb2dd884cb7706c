#pragma once
#include <cmath>

// Pointwise arithmetic, written once: X is a scalar, or an Eigen array expression in kernels/cpu.
// A functor that returns an Eigen expression must not close over a local array.

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
// 1 / (1 + exp(-x)); kernels/cpu takes Eigen's vectorised logistic.
struct Sigmoid {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    if constexpr (requires { x.logistic(); })
      return x.logistic();
    else {
      using std::exp;
      return X(1) / (X(1) + exp(-x));
    }
  }
};
// max(x, 0); NaN stays NaN, the gradient at 0 is 0.
struct Relu {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    if constexpr (requires { x.template cwiseMax<0>(typename X::Scalar(0)); })
      return (x < typename X::Scalar(0)).select(typename X::Scalar(0), x);
    else
      return x < X(0) ? X(0) : x;
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
    if constexpr (requires { typename X::Scalar; })
      return (y > typename Y::Scalar(0)).select(dy, typename X::Scalar(0));
    else
      return y > Y(0) ? dy : X(0);
  }
};

}  // namespace ebb::functors
