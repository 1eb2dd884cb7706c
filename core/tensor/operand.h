#pragma once
#include <type_traits>
#include <utility>

#include "ebb/core/base/call_site.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

// Argument of an operator: a tensor or a plain number (which gets the other operand's dtype), with
// the user's source line. Lives no longer than the call. A temporary or moved tensor is marked: the
// operator takes its memory over, uses it up or, once it has been read, frees it. A function of
// yours that reads an Operand twice must therefore take its tensor() first, a handle that lasts.
class Operand {
 public:
  Operand(const Tensor& tensor,
          CallSite site = CallSite::here()) noexcept  // NOLINT: implicit is the point
      : tensor_(&tensor), site_(site) {}
  Operand(Tensor&& tensor, CallSite site = CallSite::here()) noexcept  // NOLINT
      : tensor_(&tensor), expiring_(true), site_(site) {}
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T number, CallSite site = CallSite::here())
  noexcept  // NOLINT
      : number_(static_cast<double>(number)), site_(site) {}

  bool is_number() const noexcept { return tensor_ == nullptr; }
  double number() const noexcept { return number_; }
  const Tensor& tensor() const noexcept { return *tensor_; }
  // The tensor, moved out if it is a temporary.
  Tensor take() const noexcept {
    return expiring_ ? std::move(const_cast<Tensor&>(*tensor_)) : *tensor_;  // NOLINT
  }
  bool expiring() const noexcept { return expiring_; }
  CallSite site() const noexcept { return site_; }

 private:
  const Tensor* tensor_ = nullptr;
  double number_ = 0;
  bool expiring_ = false;
  CallSite site_;
};

}  // namespace ebb
