// Types that nccl.h includes, and nobody here uses.
#pragma once
