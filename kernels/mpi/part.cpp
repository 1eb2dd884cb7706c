// Messages by MPI. Compiled once for each MPI.
#include "ebb/kernels/mpi/part.h"

#include <mpi.h>

#include <cstddef>
#include <cstring>
#include <iterator>
#include <numeric>
#include <vector>

#include "ebb/core/base/error.h"

namespace ebb::mpi {
namespace {

using detail::Transfer;
using detail::Transport;

void require(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

// Calls an MPI function and throws its error.
#define EBB_MPI(function, ...) require(function(__VA_ARGS__), #function)

// Parts that lie one behind the other.
struct Parts {
  explicit Parts(std::span<const int> of) : counts(of.begin(), of.end()) {
    std::exclusive_scan(of.begin(), of.end(), std::back_inserter(positions), 0);
  }
  std::vector<int> counts, positions;
};

class Request final : public Transfer {
 public:
  bool is_done() override {
    int done = 0;
    EBB_MPI(MPI_Test, &request_, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  MPI_Request* get() noexcept { return &request_; }
  std::vector<Parts> parts;  // MPI reads them until the transfer is done

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

MPI_Datatype bytes_type(std::size_t size) {
  return size == 1   ? MPI_UINT8_T
         : size == 2 ? MPI_UINT16_T
         : size == 4 ? MPI_UINT32_T
                     : MPI_UINT64_T;
}

MPI_Datatype number_type(DType dtype) {
  return dtype == DType::f32   ? MPI_FLOAT
         : dtype == DType::f64 ? MPI_DOUBLE
         : dtype == DType::i32 ? MPI_INT32_T
                               : MPI_INT64_T;
}

MPI_Op operation(ReduceOp op) { return op == ReduceOp::max ? MPI_MAX : MPI_SUM; }

class Group final : public Transport {
 public:
  explicit Group(MPI_Comm communicator) : communicator_(communicator) {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
  }
  ~Group() override {
    if (communicator_ == MPI_COMM_WORLD)
      MPI_Finalize();
    else
      MPI_Comm_free(&communicator_);
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  std::unique_ptr<Transport> split(int color) override {
    MPI_Comm part = MPI_COMM_NULL;
    EBB_MPI(MPI_Comm_split, communicator_, color < 0 ? MPI_UNDEFINED : color, rank_, &part);
    return part == MPI_COMM_NULL ? nullptr : std::make_unique<Group>(part);
  }

  Started exchange(const void* from, std::span<const int> sent, void* to,
                   std::span<const int> received, std::size_t size) override {
    auto request = std::make_unique<Request>();
    const MPI_Datatype type = bytes_type(size);
    request->parts = {Parts(sent), Parts(received)};
    const Parts &out = request->parts[0], &in = request->parts[1];
    EBB_MPI(MPI_Ialltoallv, from, out.counts.data(), out.positions.data(), type, to,
            in.counts.data(), in.positions.data(), type, communicator_, request->get());
    return request;
  }

  Started gather_in_place(void* data, std::span<const int> parts, std::size_t size) override {
    auto request = std::make_unique<Request>();
    const Parts& all = request->parts.emplace_back(parts);
    EBB_MPI(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, all.counts.data(),
            all.positions.data(), bytes_type(size), communicator_, request->get());
    return request;
  }

  Started broadcast(void* data, int elements, std::size_t size, int root) override {
    auto request = std::make_unique<Request>();
    EBB_MPI(MPI_Ibcast, data, elements, bytes_type(size), root, communicator_, request->get());
    return request;
  }

  Started all_reduce(const void* from, void* to, int elements, DType dtype, ReduceOp op) override {
    auto request = std::make_unique<Request>();
    EBB_MPI(MPI_Iallreduce, from == to ? MPI_IN_PLACE : from, to, elements, number_type(dtype),
            operation(op), communicator_, request->get());
    return request;
  }

  Started reduce_scatter(const void* from, void* to, int elements_each, DType dtype,
                         ReduceOp op) override {
    auto request = std::make_unique<Request>();
    EBB_MPI(MPI_Ireduce_scatter_block, from, to, elements_each, number_type(dtype), operation(op),
            communicator_, request->get());
    return request;
  }

 private:
  MPI_Comm communicator_;
  int rank_ = 0, size_ = 1;
};

Transport* connect(const char* build, std::string& problem) {
  if (std::strcmp(build, EBB_BUILD) != 0) {
    problem = "the MPI part belongs to another build of ebb (" EBB_BUILD "; this is ";
    problem += std::string(build) + ")";
    return nullptr;
  }
  int is_initialized = 0, provided = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized != 0) {
    problem = "the program has initialised MPI itself; ebb's World does that";
    return nullptr;
  }
  // One thread makes all calls.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    problem = "MPI_Init_thread has failed";
    return nullptr;
  }
  return new Group(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace ebb::mpi

extern "C" __attribute__((visibility("default"))) ebb_mpi_part_function ebb_mpi_part;
extern "C" ebb::detail::Transport* ebb_mpi_part(const char* build, std::string& problem) {
  return ebb::mpi::connect(build, problem);
}
