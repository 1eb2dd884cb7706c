#pragma once
#include "ebb/allocator/no_copy.h"
