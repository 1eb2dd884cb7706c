#pragma once
#include <string>

#include "ebb/allocator/category.h"
#include "ebb/core/initializer.h"
#include "ebb/core/shape.h"

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
