#include "ebb/core/ops/host_copy.h"

namespace ebb {

constinit const OpDef move_out_op{
    .name = "move_out", .infer = nullptr, .stateful = true, .cuda = {cuda::begin_host_copy}};
constinit const OpDef move_in_op{
    .name = "move_in", .infer = nullptr, .stateful = true, .cuda = {cuda::begin_host_copy}};
constinit const OpDef moved_op{
    .name = "moved", .infer = nullptr, .stateful = true, .cuda = {cuda::end_host_copy}};

}  // namespace ebb
