// Streams, events and launches.
#include <algorithm>

#include "ebb/tests/emulated_cuda/api/call.h"

using namespace ebb::emulated;

namespace {

// Checks a stream whose progress is asked for. That invalidates a capture of it.
cudaError_t check_idle(Machine& own, cudaStream_t stream, const char* what) {
  const cudaError_t error = own.check_stream(stream, what);
  if (error != cudaSuccess || !stream->capture) return error;
  stream->capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

void join(CUstream_st* stream, const CUevent_st* event) {
  if (!stream->capture) {
    stream->capture = event->capture;
    stream->capture->streams.push_back(stream);
    stream->after.clear();
  }
  for (const std::size_t node : event->after)
    if (std::find(stream->after.begin(), stream->after.end(), node) == stream->after.end())
      stream->after.push_back(node);
}

constexpr unsigned kMostThreads = 1024;

bool is_shape(dim3 grid, dim3 block) {
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7FFFFFFFu && grid.y <= 65535 &&
         grid.z <= 65535 && block.x > 0 && block.y > 0 && block.z > 0 && block.z <= 64 &&
         block.x <= kMostThreads && block.y <= kMostThreads &&
         block.x * block.y * block.z <= kMostThreads;
}

}  // namespace

cudaError_t ebb_emulated_launch(const cudaLaunchConfig_t* config, const KernelCall* kernel) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (!config || !kernel->kernel) return cudaErrorInvalidDeviceFunction;
    if (!is_shape(config->gridDim, config->blockDim) || config->dynamicSmemBytes != 0)
      return cudaErrorInvalidConfiguration;
    if (const cudaError_t wish = own.injected(Fault::launch); wish != cudaSuccess) return wish;
    ++own.statistics.launches;
    return own.put(lock, config->stream,
                   std::make_shared<KernelWork>(*kernel, config->gridDim, config->blockDim));
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!stream || flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::create_stream); wish != cudaSuccess)
      return wish;
    *stream = new CUstream_st{own.make_queue()};
    own.streams.insert(*stream);
    return cudaSuccess;
  });
}

// Work that the stream was given before is still done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  auto lock = machine().lock();
  Machine& own = machine();
  if (!own.is_stream(stream)) return answer(cudaErrorInvalidResourceHandle);
  stream->queue->closed = true;
  if (stream->capture) {
    stream->capture->invalid = true;
    std::erase(stream->capture->streams, stream);
    if (stream->capture->origin == stream)
      for (CUstream_st* other : stream->capture->streams) other->capture.reset();
  }
  own.streams.erase(stream);
  delete stream;
  return answer(own.lost.code);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = check_idle(own, stream, "cudaStreamSynchronize");
        error != cudaSuccess)
      return error;
    ++own.statistics.synchronisations;
    const QueuePtr queue = stream->queue;
    own.run_until(lock, queue, queue->asked);
    return own.lost.code;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = check_idle(own, stream, "cudaStreamQuery"); error != cudaSuccess)
      return error;
    const bool done = own.poll(lock, QueuePtr(stream->queue));
    return !own.lost.ok() ? own.lost.code : done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = own.check_stream(stream, "cudaStreamWaitEvent");
        error != cudaSuccess)
      return error;
    if (own.events.count(event) == 0) return cudaErrorInvalidResourceHandle;
    if (flags != 0) return cudaErrorInvalidValue;
    ++own.statistics.waits;
    if (event->capture) {
      if (stream->capture && stream->capture != event->capture) {
        stream->capture->invalid = true;
        event->capture->invalid = true;
        return cudaErrorStreamCaptureMerge;
      }
      if (event->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      if (!own.drops_waits || !stream->capture) join(stream, event);
      return cudaSuccess;
    }
    if (stream->capture) {
      stream->capture->invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (event->queue && event->queue->done() < event->until && !own.drops_waits)
      own.push(lock, stream->queue, {.of = event->queue, .until = event->until});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!event || flags != cudaEventDisableTiming) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::create_event); wish != cudaSuccess)
      return wish;
    *event = new CUevent_st;
    own.events.insert(*event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  auto lock = machine().lock();
  if (machine().events.erase(event) == 0) return answer(cudaErrorInvalidResourceHandle);
  delete event;
  return answer(machine().lost.code);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock&) {
    if (const cudaError_t error = own.check_stream(stream, "cudaEventRecord"); error != cudaSuccess)
      return error;
    if (own.events.count(event) == 0) return cudaErrorInvalidResourceHandle;
    if (stream->capture) {
      if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      event->capture = stream->capture;
      event->after = stream->after;
      return cudaSuccess;
    }
    event->capture.reset();
    event->queue = stream->queue;
    event->until = stream->queue->asked;
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (own.events.count(event) == 0) return cudaErrorInvalidResourceHandle;
    if (event->capture) {
      event->capture->invalid = true;
      return cudaErrorCapturedEvent;
    }
    if (!event->queue) return cudaSuccess;
    ++own.statistics.synchronisations;
    own.run_until(lock, QueuePtr(event->queue), event->until);
    return own.lost.code;
  });
}
