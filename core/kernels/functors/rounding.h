#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

EBB_FUNCTOR(Abs : Exact, abs)
struct Sign : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x > X{} ? X{} + 1 : x < X{} ? X{} - 1 : x + X{};  // -0 + 0 is 0, and NaN stays
  }
};
EBB_FUNCTOR(Floor : Exact, floor)
EBB_FUNCTOR(Ceil : Exact, ceil)
EBB_FUNCTOR(Round : Exact, rint)
EBB_FUNCTOR(Trunc : Exact, trunc)
// The remainder of a by b with the quotient cut to an integer: exact. Libraries divide bit by bit.
// Where the quotient has fewer bits than X, one fma gives the remainder, which X can hold. If the
// quotient was rounded up, the remainder has the other sign, which is right as well. Only rare
// cases branch by element: branches would be mispredicted half of the time.
template <class X>
struct Rest {
  X rest;
  bool usual;    // a, b and the quotient are finite, the quotient below 2^22
  bool differs;  // the rest is not 0 and has not b's sign

  EBB_HOST_DEVICE Rest(const X& a, const X& b) {
    using std::abs, std::fma, std::fmod, std::trunc;
    const X quotient = trunc(a / b);
    usual = (abs(quotient) < parameter<X>(0x1p22)) & (abs(b) < parameter<X>(HUGE_VAL));
    rest = usual ? fma(-quotient, b, a) : fmod(a, b);
    differs = (rest != X{}) & ((rest < X{}) != (b < X{}));
  }
};

struct Remainder : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    using std::copysign;
    const Rest<X> of(a, b);
    if (of.usual) return copysign(of.rest + static_cast<X>(of.differs) * b, b);
    if (of.rest == X{}) return copysign(of.rest, b);
    return of.differs ? of.rest + b : of.rest;
  }
};

// The quotient of a less its remainder, which is next to an integer, as in NumPy.
struct FloorDivide : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    using std::copysign, std::floor;
    if (b == X{}) return a / b;
    const Rest<X> of(a, b);
    const X quotient = (a - of.rest) / b - static_cast<X>(of.differs), below = floor(quotient);
    return copysign(below + static_cast<X>(quotient - below > parameter<X>(0.5)), a / b);
  }
};

}  // namespace ebb::functors
