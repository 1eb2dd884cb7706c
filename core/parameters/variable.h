#pragma once
#include <string>

#include "ebb/allocator/category.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/parameters/initializer.h"

namespace ebb {

// A named value that outlives a step: a parameter, or an optimizer's slot (moments, counts). Eager
// Parameters hold its tensor; in a graph it is a declaration, of which each session has a value.
struct VariableDeclaration {
  std::string name;
  Spec spec;
  Initializer initializer;
  Seed seed;
  memory::Category category = memory::Category::parameter;
  CallSite site;
};

}  // namespace ebb
