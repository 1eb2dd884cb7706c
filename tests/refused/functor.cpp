// What is no operator of one's own, though it looks like one: the compiler says why. check.sh reads
// this file.
#include "ebb/custom_operator.h"
#include "ebb/ebb.h"

using namespace ebb;

struct Named {
  static constexpr const char* name = "functor";
};
struct Narrowing : Named {  // f64 would lose half of its digits
  EBB_HOST_DEVICE float operator()(float x) const { return x * x; }
};

struct NarrowSlope {
  static constexpr const char* name = "slope";
  template <class X>
  EBB_HOST_DEVICE float operator()(X x) const {
    return static_cast<float>(2 * x);
  }
};
struct WithNarrowSlope : Named {
  using Derivatives = ebb::Derivatives<NarrowSlope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * x;
  }
};

struct SlopeOfTwo {
  static constexpr const char* name = "slope";
  double factor = 1, offset = 0;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return static_cast<X>(factor) * x + static_cast<X>(offset);
  }
};
struct WithSlopeOfTwo : Named {
  using Derivatives = ebb::Derivatives<SlopeOfTwo>;
  double factor = 1;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return static_cast<X>(factor) * x * x;
  }
};

struct Slope {
  static constexpr const char* name = "slope";
  template <class X>
  EBB_HOST_DEVICE X operator()(X, X y) const {
    return y;
  }
};
struct WithOneSlopeOfTwo : Named {
  static constexpr int inputs = 2;
  using Derivatives = ebb::Derivatives<Slope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x, X y) const {
    return x * y;
  }
};

struct Square {
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * x;
  }
};
struct TooBig : Square {
  static constexpr const char* name = "functor";
  double coefficients[13] = {};
};
struct NoNumber : Square {
  static constexpr const char* name = "functor";
  Tensor factor;
};
struct Changing : Named {
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) {
    return x * x;
  }
};
struct OfTwo : Named {
  template <class X>
  EBB_HOST_DEVICE X operator()(X x, X) const {
    return x * x;
  }
};

void refused(const Tensor& x) {
  custom_operator(Narrowing(), x);             // refused: a functor gives double for double
  custom_operator(WithNarrowSlope(), x);       // refused: a functor gives double for double
  custom_operator(WithSlopeOfTwo(), x);        // refused: the functor as its only member
  custom_operator(WithOneSlopeOfTwo(), x, x);  // refused: one derivative for each of its inputs
  custom_operator(Square(), x);                // refused: a functor has a name
  custom_operator(TooBig(), x);                // refused: parameters take 96 bytes at most
  custom_operator(NoNumber(), x);              // refused: parameters are numbers
  custom_operator(Changing(), x);              // refused: const takes one, two or three numbers
  custom_operator(OfTwo(), x);                 // refused: this functor has another number of inputs
}
