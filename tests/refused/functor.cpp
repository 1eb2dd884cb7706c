// What is no operator of one's own, though it looks like one: the compiler says why.
#include "ebb/custom_operator.h"
#include "ebb/ebb.h"

using namespace ebb;

#if defined(NARROWING)  // f64 would lose half of its digits
struct Functor {
  static constexpr const char* name = "functor";
  EBB_HOST_DEVICE float operator()(float x) const { return x * x; }
};
#elif defined(SLOPE_NARROWING)
struct Slope {
  static constexpr const char* name = "slope";
  template <class X>
  EBB_HOST_DEVICE float operator()(X x) const {
    return static_cast<float>(2 * x);
  }
};
struct Functor {
  static constexpr const char* name = "functor";
  using Derivatives = ebb::Derivatives<Slope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * x;
  }
};
#elif defined(SLOPE_PARAMETERS)
struct Slope {
  static constexpr const char* name = "slope";
  double factor = 1, offset = 0;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return static_cast<X>(factor) * x + static_cast<X>(offset);
  }
};
struct Functor {
  static constexpr const char* name = "functor";
  using Derivatives = ebb::Derivatives<Slope>;
  double factor = 1;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return static_cast<X>(factor) * x * x;
  }
};
#elif defined(SLOPES)  // one of two is missing
struct Slope {
  static constexpr const char* name = "slope";
  template <class X>
  EBB_HOST_DEVICE X operator()(X, X y) const {
    return y;
  }
};
struct Functor {
  static constexpr const char* name = "functor";
  static constexpr int inputs = 2;
  using Derivatives = ebb::Derivatives<Slope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x, X y) const {
    return x * y;
  }
};
#else
struct Functor {
#if !defined(NAMELESS)
  static constexpr const char* name = "functor";
#endif
#if defined(TOO_BIG)
  double coefficients[13] = {};
#elif defined(NO_NUMBER)
  Tensor factor;
#endif
  template <class X>
#if defined(CHANGING)
  EBB_HOST_DEVICE X operator()(X x) {
#elif defined(ARITY)
  EBB_HOST_DEVICE X operator()(X x, X) const {
#else
  EBB_HOST_DEVICE X operator()(X x) const {
#endif
    return x * x;
  }
};
#endif

Tensor refused(const Tensor& x) {
#if defined(SLOPES)
  return custom_operator(Functor(), x, x);
#else
  return custom_operator(Functor(), x);
#endif
}
