#include "ebb/graph/session.h"

#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

Session::Session(const Graph& graph, const SessionOptions& options)
    : impl_(std::make_shared<Impl>(graph, options)) {}

const std::shared_ptr<Session::Impl>& Session::Pointer::shared() const {
  if (!impl_) detail::refuse<SessionClosed>("Session", "this session was moved from");
  return impl_;
}

Session::~Session() {
  if (impl_) impl_->end();
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  if (this != &other && impl_) impl_->end();
  impl_ = std::exchange(other.impl_, {});
  return *this;
}

Tensor Session::run(const Tensor& fetch, const Feeds& feeds, CallSite site) {
  return std::move(run(Tensors{fetch}, feeds, site)[0]);
}
Tensors Session::run(const Tensors& fetches, const Feeds& feeds, CallSite site) {
  const detail::CallSiteScope scope(site);
  // Copies: a watch call may drop these handles and the feeds'.
  const std::shared_ptr<Impl> impl = impl_.shared();
  return impl->run(Tensors(fetches), Feeds(feeds));
}

memory::Breakdown Session::memory() const { return impl_->memory(); }
std::size_t Session::available() const {
  const Impl::Look look(*impl_);
  return impl_->available();
}
memory::Stats Session::stats() const { return impl_->pool->stats(); }
void Session::set_memory_limit(std::optional<memory::Limit> limit) {
  impl_->pool->set_limit(memory::least_bytes({limit, impl_->options.budget},
                                             impl_->device.runtime().capacity_bytes()));
}
memory::CloseReport Session::suspend() { return impl_.shared()->suspend(nullptr); }
memory::CloseReport Session::suspend(const std::string& file) {
  return impl_.shared()->suspend(&file);
}
void Session::resume() {
  const std::shared_ptr<Impl> impl = impl_.shared();  // a watch call may drop this handle
  impl->resume();
}
bool Session::suspended() const noexcept { return impl_ && impl_->is_suspended; }
const Device& Session::device() const { return impl_->device; }
memory::CloseReport Session::close() { return impl_ ? impl_->close() : memory::CloseReport{}; }

std::size_t Session::plans() const {
  const Impl::Look look(*impl_);
  return impl_->plans.size();
}
bool Session::closed() const noexcept { return !impl_ || impl_->closed; }

struct PreparedStep::State {
  std::shared_ptr<Session::Impl> session;
  Tensors fetches;
  Session::Impl::Feeding feeding;
  std::shared_ptr<Session::Impl::CachedProgram> plan;
  CallSite site;  // line that prepared it
};

PreparedStep::PreparedStep(std::unique_ptr<State> state) : state_(std::move(state)) {}
PreparedStep::~PreparedStep() = default;
PreparedStep::PreparedStep(PreparedStep&&) noexcept = default;
PreparedStep& PreparedStep::operator=(PreparedStep&&) noexcept = default;

PreparedStep Session::prepare(const Tensor& fetch, const Tensors& placeholders, CallSite site) {
  return prepare_all({fetch}, placeholders, site);
}

PreparedStep Session::prepare_all(Tensors fetches, const Tensors& placeholders, CallSite site) {
  const detail::CallSiteScope scope(site);
  const GraphState& graph = impl_->graph.state();
  for (const Tensor& fetch : fetches)
    if (!graph.owns(fetch))
      detail::refuse("prepare", "a fetch is not a tensor of this graph: " + fetch.to_string());
  InlineVector<const Tensor*, 8> given;
  for (const Tensor& placeholder : placeholders) given.push_back(&placeholder);
  return PreparedStep(std::make_unique<PreparedStep::State>(PreparedStep::State{
      impl_.shared(), std::move(fetches),
      Session::Impl::Feeding(graph, {given.data(), given.size()}), nullptr, site}));
}

Tensors PreparedStep::run_all(const Tensor* const* values, std::size_t count) {
  if (!state_) detail::refuse("prepare", "this step was moved from");
  const detail::CallSiteScope scope(state_->site);
  Session::Impl& session = *state_->session;
  InlineVector<Tensor, 8> held;
  InlineVector<const Tensor*, 8> given;
  if (session.device.runtime().allocator().is_watched()) [[unlikely]] {
    held.reserve(count);  // a watch call may drop the caller's handles
    for (std::size_t i = 0; i < count; ++i) {
      held.push_back(*values[i]);
      given.push_back(&held[i]);
    }
    values = given.data();
  }
  return session.run_prepared(state_->fetches, state_->feeding, {values, count}, state_->plan);
}

}  // namespace ebb
