#pragma once
#include <string>

#include "ebb/allocator/category.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/parameters/initializer.h"

namespace ebb {

// A named value that outlives a step: a parameter, or an optimizer's slot (moments, counts). In
// eager mode Parameters hold its tensor. In a graph it is a declaration, and each session has a
// value.
struct VariableDeclaration {
  std::string name;
  Spec spec;
  Initializer initializer;
  Seed seed;
  memory::Category category = memory::Category::parameter;
  CallSite site;
};

}  // namespace ebb
