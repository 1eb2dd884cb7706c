// What the deferred device answers when something is wrong.
#include <string>

#include "ebb/tests/catch.h"
#include "ebb/tests/device/deferred_fixture.h"

namespace ebb::tests {
namespace {

using Work = DeferredBackend::Work;
using Fault = DeferredBackend::Fault;

bool says(const Status& status, const std::string& text) {
  return !status.ok() && std::string(status.problem).find(text) != std::string::npos;
}

TEST_CASE(
    "an address that is not in the deferred device's memory is refused where it is asked for") {
  DeferredDevice device;
  DeferredBackend& backend = device.backend;
  const auto stream = backend.make_stream();
  float* const x = device.floats(1);
  const std::size_t page = device.source.page_bytes();
  float host = 0;
  CHECK(says(backend.fill(stream.get(), &host, 0, 4), "fill: an address that is not"));
  CHECK(says(backend.fill(stream.get(), x, 0, page + 1), "fill: an address that is not"));
  CHECK(says(backend.copy(stream.get(), x, &host, 4), "copy: an address that is not"));
  CHECK(says(backend.copy(stream.get(), x, x + 1, 8), "copy: the two places overlap"));
  CHECK(says(backend.copy_in(stream.get(), x, x + 1, 4), "copy_in: what is the host's"));
  CHECK(says(backend.copy_out(stream.get(), x + 1, x, 4), "copy_out: what is the host's"));
  CHECK(says(backend.copy_out(stream.get(), &host, &host, 4), "copy_out: an address that is not"));
  const Launched launched = launch_affine(device, stream.get(), &host, x, {});
  CHECK(says(launched.status, "affine: an address that is not"));
  CHECK(launched.count == 0);
  device.source.unmap(x, page);
  CHECK(says(launch_affine(device, stream.get(), x, x, {}).status, "affine: an address"));
  CHECK(backend.waiting() == 0);
  CHECK(backend.synchronise(stream.get()).ok());
}

TEST_CASE("no bytes are legal on the deferred device with any address") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float host = 0;
  CHECK(device.backend.fill(stream.get(), nullptr, 0, 0).ok());
  CHECK(device.backend.copy(stream.get(), &host, &host, 0).ok());
  CHECK(device.backend.copy_in(stream.get(), &host, nullptr, 0).ok());
  CHECK(device.backend.copy_out(stream.get(), nullptr, &host, 0).ok());
  CHECK(launch_affine(device, stream.get(), &host, &host, {}, 0).status.ok());
  CHECK(device.backend.synchronise(stream.get()).ok());
}

TEST_CASE("the deferred device takes streams of its own only") {
  DeferredDevice device, other;
  const auto stream = device.backend.make_stream(), foreign = other.backend.make_stream();
  float* const x = device.floats(1);
  CHECK(says(device.set(nullptr, x, 1), "no stream of this device"));
  CHECK(says(device.set(foreign.get(), x, 1), "no stream of this device"));
  CHECK(says(device.backend.wait(stream.get(), nullptr), "no stream of this device"));
  CHECK(says(device.backend.synchronise(foreign.get()), "no stream of this device"));
}

TEST_CASE("a kernel that answers with a problem loses the deferred device") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream(), other = device.backend.make_stream();
  float* const x = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 1).ok());
  REQUIRE(launch_affine(device, stream.get(), x, x, {}, 1, refuses, "picky").status.ok());
  REQUIRE(launch_affine(device, stream.get(), x, x, {}).status.ok());
  const Status lost = device.backend.synchronise(stream.get());
  CHECK(says(lost, "picky: no such algorithm"));
  CHECK(lost.code == 7);
  CHECK_FALSE(lost.refused);  // it is too late for that
  CHECK(device.backend.waiting() == 0);
  CHECK(says(device.set(other.get(), x, 1), "picky"));
  CHECK(says(launch_affine(device, other.get(), x, x, {}).status, "picky"));
  CHECK(says(device.backend.wait(stream.get(), other.get()), "picky"));
  CHECK(says(device.backend.synchronise(other.get()), "picky"));
  float host = 0;
  CHECK(says(device.backend.copy_out(other.get(), &host, x, 4), "picky"));
  device.backend.restore();
  REQUIRE(device.set(other.get(), x, 4).ok());
  CHECK(device.value(other.get(), x) == 4);
}

TEST_CASE("a kernel of the deferred device that runs at once answers for itself") {
  DeferredDevice device;
  device.backend.set_at_once(true);
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 1).ok());
  const Status status = launch_affine(device, stream.get(), x, x, {}, 1, refuses).status;
  CHECK(status.refused);
  CHECK(status.code == 7);
  CHECK(device.value(stream.get(), x) == 1);
}

TEST_CASE("a row of launches on the deferred device ends at the one that is refused") {
  DeferredDevice device;
  const auto stream = device.backend.make_stream();
  float* const x = device.floats(1);
  REQUIRE(device.set(stream.get(), x, 1).ok());
  const Spec spec{DType::f32, {1}};
  const std::vector<Buffer> places = {{x, spec}};
  const Attributes attributes(Affine{1, 1});
  std::vector<Launch> launches(5);
  for (Launch& launch : launches) {
    launch.run = affine;
    launch.context.inputs = launch.context.outputs = places;
    launch.context.attributes = &attributes;
    launch.name = "affine";
  }
  for (const Fault fault : {Fault::refused, Fault::failed}) {
    device.backend.inject(Work::launch, fault, 3);
    const Launched launched = device.backend.run(stream.get(), launches);
    CHECK(launched.count == 3);
    CHECK(launched.status.refused == (fault == Fault::refused));
  }
  // The one that failed may have written, and here it has.
  CHECK(device.value(stream.get(), x) == 1 + 3 + 4);
}

TEST_CASE("the deferred device says which work was to be waited for") {
  DeferredDevice device;
  const auto a = device.backend.make_stream(), b = device.backend.make_stream();
  float* const x = device.floats(4);
  float* const y = device.floats(4);
  const auto launch = [&](const auto& stream, float* to, float* from) {
    return launch_affine(device, stream.get(), to, from, {}, 2).status;
  };
  REQUIRE(device.set(a.get(), x, {1, 2, 3, 4}).ok());
  CHECK(says(launch(b, y, x), "affine: reads what copy_in of another stream writes"));
  CHECK(says(device.backend.fill(b.get(), x + 3, 0, 4), "fill: writes what copy_in of another"));
  REQUIRE(device.backend.wait(b.get(), a.get()).ok());
  CHECK(launch(b, y, x + 1).ok());  // elements 1 and 2
  CHECK(device.backend.fill(a.get(), x, 0, 4).ok());
  CHECK(device.backend.fill(a.get(), x + 3, 0, 4).ok());
  for (const int i : {1, 2})
    CHECK(says(device.backend.fill(a.get(), x + i, 0, 4), "fill: writes what affine of another"));
  CHECK(launch(a, x + 8, x + 1).ok());  // two may read
  CHECK(says(device.backend.fill(b.get(), x + 2, 0, 4),
             "writes what affine of another stream reads"));
  // The host has waited, so that whatever it asks for comes later.
  CHECK(device.backend.synchronise(a.get()).ok());
  CHECK(device.backend.fill(b.get(), x + 2, 0, 4).ok());
  CHECK(says(launch(a, x, y), "affine: reads what affine of another stream writes"));
  CHECK(device.values(b.get(), y, 2) == std::vector<float>{2, 3});
  CHECK(launch(a, x, y).ok());
}

TEST_CASE("work of other streams is waited for through those that waited for it") {
  DeferredDevice device;
  const auto a = device.backend.make_stream(), b = device.backend.make_stream(),
             c = device.backend.make_stream();
  float* const x = device.floats(1);
  REQUIRE(device.set(a.get(), x, 1).ok());
  REQUIRE(device.backend.wait(b.get(), a.get()).ok());
  REQUIRE(device.backend.wait(c.get(), b.get()).ok());
  CHECK(device.set(c.get(), x, 2).ok());
  CHECK_FALSE(device.set(b.get(), x, 3).ok());
  CHECK(device.value(c.get(), x) == 2);
}

TEST_CASE("each kind of work on the deferred device fails as a test asks for, once") {
  DeferredDevice device;
  DeferredBackend& backend = device.backend;
  const auto stream = backend.make_stream();
  float* const x = device.floats(2);
  float host = 1;
  const auto ask = [&](Work work) {
    switch (work) {
      case Work::copy_in:
        return backend.copy_in(stream.get(), x, &host, 4);
      case Work::copy_out:
        return backend.copy_out(stream.get(), &host, x, 4);
      case Work::copy:
        return backend.copy(stream.get(), x, x + 1, 4);
      case Work::fill:
        return backend.fill(stream.get(), x, 0, 4);
      case Work::launch:
        return launch_affine(device, stream.get(), x, x, {}).status;
    }
    return Status{};
  };
  for (const Work work : {Work::copy_in, Work::copy_out, Work::copy, Work::fill, Work::launch}) {
    INFO(name(work));
    backend.inject(work, Fault::refused, 1);
    CHECK(ask(work).ok());
    CHECK(ask(work).refused);
    CHECK(ask(work).ok());
    backend.inject(work, Fault::failed);
    const Status failed = ask(work);
    CHECK_FALSE(failed.ok());
    CHECK_FALSE(failed.refused);
    CHECK(backend.synchronise(stream.get()).ok());
    backend.inject(work, Fault::later);
    CHECK(ask(work).ok() == (work != Work::copy_out));  // which is done when it answers
    CHECK(says(backend.synchronise(stream.get()), "failed later"));
    CHECK_FALSE(ask(work).ok());
    backend.restore();
    CHECK(ask(work).ok());
  }
}

}  // namespace
}  // namespace ebb::tests
