#include "ebb_docs/README_1.inc"
