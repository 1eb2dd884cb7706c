// Streams, events and launches.
#include <algorithm>

#include "ebb/tests/emulated_cuda/api/call.h"

using namespace ebb::emulated;

namespace {

// Checks that a stream may be used. Counts uses of the default stream as mistakes.
cudaError_t check_stream(Machine& own, cudaStream_t stream, const char* what) {
  if (own.is_stream(stream)) return own.lost_code(stream->device);
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    ++own.statistics.default_stream_uses;
    own.complain(std::string(what) + ": the default stream");
  }
  return cudaErrorInvalidResourceHandle;
}

// Asking for the progress of a stream that is captured invalidates the capture.
cudaError_t refuse_captured(cudaStream_t stream) {
  if (!stream->capture) return cudaSuccess;
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
    if (own.is_stream(config->stream) && config->stream->device != thread_state().device)
      return cudaErrorInvalidResourceHandle;
    return own.put(lock, config->stream,
                   std::make_shared<KernelWork>(*kernel, config->gridDim, config->blockDim));
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!stream || flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::create_stream); wish != cudaSuccess)
      return wish;
    const int device = thread_state().device;
    *stream = new CUstream_st{device, own.make_queue(device)};
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
  const int device = stream->device;
  own.streams.erase(stream);
  delete stream;
  return answer(own.lost_code(device));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = check_stream(own, stream, "cudaStreamSynchronize");
        error != cudaSuccess)
      return error;
    if (const cudaError_t error = refuse_captured(stream); error != cudaSuccess) return error;
    ++own.statistics.synchronisations;
    const QueuePtr queue = stream->queue;
    own.run_until(lock, queue, queue->asked);
    return own.lost_code(queue->device);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = check_stream(own, stream, "cudaStreamQuery");
        error != cudaSuccess)
      return error;
    if (const cudaError_t error = refuse_captured(stream); error != cudaSuccess) return error;
    const QueuePtr queue = stream->queue;
    const bool done = own.poll(lock, queue);
    const cudaError_t lost = own.lost_code(queue->device);
    return lost != cudaSuccess ? lost : done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = check_stream(own, stream, "cudaStreamWaitEvent");
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
    if (!event->marker || event->marker->done || own.drops_waits) return cudaSuccess;
    Entry entry;
    entry.waits_for = event->marker;
    entry.of = event->queue;
    own.push(lock, stream->queue, std::move(entry));
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!event || flags != cudaEventDisableTiming) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::create_event); wish != cudaSuccess)
      return wish;
    *event = new CUevent_st{thread_state().device};
    own.events.insert(*event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  auto lock = machine().lock();
  if (machine().events.erase(event) == 0) return answer(cudaErrorInvalidResourceHandle);
  const int device = event->device;
  delete event;
  return answer(machine().lost_code(device));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (const cudaError_t error = check_stream(own, stream, "cudaEventRecord");
        error != cudaSuccess)
      return error;
    if (own.events.count(event) == 0 || event->device != stream->device)
      return cudaErrorInvalidResourceHandle;
    if (stream->capture) {
      if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      event->capture = stream->capture;
      event->after = stream->after;
      return cudaSuccess;
    }
    event->capture.reset();
    event->marker = std::make_shared<Marker>();
    event->queue = stream->queue;
    Entry entry;
    entry.signals = event->marker;
    own.push(lock, stream->queue, std::move(entry));
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
    if (!event->marker) return cudaSuccess;
    ++own.statistics.synchronisations;
    const QueuePtr queue = event->queue;
    const MarkerPtr marker = event->marker;
    own.run_marker(lock, queue, marker);
    return own.lost_code(queue->device);
  });
}
