// The only file compiled with the folder's name, so that all others are the same in every tree.
#include "ebb/tests/source_folder.h"

namespace ebb::tests {

std::string source_folder() { return EBB_SOURCE_DIR; }

}  // namespace ebb::tests
