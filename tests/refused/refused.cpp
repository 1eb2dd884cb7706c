// Lines that must not compile, each followed by the compiler's message. run.cmake reads these
// comments.
#include "ebb/custom_operator.h"
#include "ebb/ebb.h"

using namespace ebb;

// A fraction where bytes are meant: 0.5 is no limit of 0 bytes. Three types, since a compiler
// reports each only once.
void limits(const Device& device, Session& session, const Graph& graph) {
  memory::set_limit(device, 0.5);
  // refused: for a part of the device's capacity say memory::Limit::fraction
  session.set_memory_limit(0.5f);
  // refused: for a part of the device's capacity say memory::Limit::fraction
  session = Session(graph, {.device = device, .memory_limit = 0.5L});
  // refused: for a part of the device's capacity say memory::Limit::fraction
}
static_assert(
    std::is_same_v<decltype(&memory::on_threshold),
                   memory::Watch (*)(const Device&, memory::Limit, memory::WatchFunction)>);

// Arguments with two possible meanings.
void options(const Tensor& x, Graph& graph) {
  layer_norm(x, {.axes = 2});
  layer_norm(x, {.epsilon = 1e-6});
  norm(x, {.p = 1});
  layer_norm(x, {2});
  // refused: said by its name: {.axes = 1} is the last axis
  rms_norm(x, x, {1e-6});
  // refused: said by its name: {.axes = 1} is the last axis
  norm(x, {1});
  // refused: said by its name: {.p = 1} or {.axis
  variance(x, {.ddof = 1});
  // refused: no matching function for call to
  zeros(2, 3);
  // refused: in braces: zeros({2, 3})
  zeros(graph, 2, 3);
  // refused: in braces: zeros(graph, {2, 3})
  Parameters params;
  // refused: Parameters params(device)
  for (const auto& row : x) layer_norm(row);
  // refused: x[i] for i below
  Tensor y = x;
  y[0] = x;
  // refused: x[0] is a copy: assign_slice
}

// Functors that are not valid custom operators.
#define FUNCTOR static constexpr const char* name = "functor";

struct Narrowing {  // f64 would lose half of its digits
  FUNCTOR
  EBB_HOST_DEVICE float operator()(float x) const { return x * x; }
};

struct NarrowSlope {
  FUNCTOR
  template <class X>
  EBB_HOST_DEVICE float operator()(X x) const {
    return static_cast<float>(2 * x);
  }
};
struct WithNarrowSlope {
  FUNCTOR
  using Derivatives = ebb::Derivatives<NarrowSlope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * x;
  }
};

struct WideSlope {
  FUNCTOR
  double factor = 1, offset = 0;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return static_cast<X>(factor) * x + static_cast<X>(offset);
  }
};
struct WithWideSlope {
  FUNCTOR
  using Derivatives = ebb::Derivatives<WideSlope>;
  double factor = 1;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return static_cast<X>(factor) * x * x;
  }
};

struct OneSlope {
  FUNCTOR
  template <class X>
  EBB_HOST_DEVICE X operator()(X, X y) const {
    return y;
  }
};
struct WithOneSlopeOfTwo {
  FUNCTOR
  static constexpr int inputs = 2;
  using Derivatives = ebb::Derivatives<OneSlope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x, X y) const {
    return x * y;
  }
};

// A square. The functors below fail by a member that they add or lack.
struct Square {
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * x;
  }
};
struct TooBig : Square {
  FUNCTOR
  double coefficients[13] = {};
};
struct NoNumber : Square {
  FUNCTOR
  Tensor factor;
};
struct Nameless : Square {};
struct Changing {
  FUNCTOR
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) {
    return x * x;
  }
};
struct OfTwo {
  FUNCTOR
  template <class X>
  EBB_HOST_DEVICE X operator()(X x, X) const {
    return x * x;
  }
};

void functors(const Tensor& x) {
  custom_operator(Narrowing(), x);
  // refused: a functor gives double for double
  custom_operator(WithNarrowSlope(), x);
  // refused: a functor gives double for double
  custom_operator(WithWideSlope(), x);
  // refused: a derivative with parameters has the functor as its only member
  custom_operator(WithOneSlopeOfTwo(), x, x);
  // refused: a functor has one derivative for each of its inputs
  custom_operator(TooBig(), x);
  // refused: a functor's parameters take 96 bytes at most
  custom_operator(NoNumber(), x);
  // refused: parameters are numbers
  custom_operator(Nameless(), x);
  // refused: a functor has a name
  custom_operator(Changing(), x);
  // refused: operator() const takes one, two or three numbers
  // refused: this functor has another number of inputs
  custom_operator(OfTwo(), x);
  // refused: this functor has another number of inputs
}

void compiled(const Tensor& x) {
  compile([](const Tensor& y, const Square&) { return y; })(x, Square());
  // refused: an argument of a compiled step is a Tensor, a list of tensors, or a value
  compile([](const Tensor& y) { return y.item<float>(); })(x);
  // refused: a compiled step returns tensors: one, a list, an array, a pair or a tuple
  compile([](const Tensor& y) { return std::tuple(y, 1); })(x);
  // refused: a compiled step returns tensors: one, a list, an array, a pair or a tuple
}
