#include "ebb/core/memory/place_parts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace ebb::memory::detail {

namespace {

using Indices = std::vector<std::uint32_t>;

enum class Ends { none, some, all };

// Buffers on top of each other, as in a PQ-tree (Booth and Lueker, Journal of Computer and System
// Sciences 13, 1976): a buffer, or parts in any order, or in their order and its reverse.
struct Node {
  std::uint32_t buffer = 0;  // without parts
  std::vector<Node> parts;
  bool ordered = false;
  Ends ends = Ends::none;  // how many buffers end at the present step
};

// Buffers that end at a step, and buffers that take their place.
struct Change {
  Indices ended, begun;
  // If `ended` has a direction: a buffer below its first one, or else above its last one.
  Indices below, above;
};

Node any_order(std::vector<Node> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  const Ends ends = parts[0].ends;
  return {0, std::move(parts), false, ends};
}

Node any_order(const Indices& buffers) {
  std::vector<Node> parts;
  for (const std::uint32_t b : buffers) parts.push_back({b, {}});
  return any_order(std::move(parts));
}

bool has_ends(const Node& node) { return node.ends != Ends::none; }
bool lacks_ends(const Node& node) { return node.ends == Ends::none; }
bool fewer_ends(const Node& a, const Node& b) { return a.ends < b.ends; }

void append_buffers(const Node& node, Indices& to) {
  if (node.parts.empty()) to.push_back(node.buffer);
  for (const Node& part : node.parts) append_buffers(part, to);
}

void mark(Node& node, std::span<const Lifetime> buffers, std::size_t step) {
  if (node.parts.empty()) {
    node.ends = buffers[node.buffer].end == step ? Ends::all : Ends::none;
    return;
  }
  for (Node& part : node.parts) mark(part, buffers, step);
  const auto differs = [&](const Node& part) { return part.ends != node.parts[0].ends; };
  const bool mixed = std::any_of(node.parts.begin(), node.parts.end(), differs);
  node.ends = mixed ? Ends::some : node.parts[0].ends;
}

// Appends the parts of a node in such an order that buffers that end come last.
bool split(Node node, std::vector<Node>& to) {
  std::vector<Node>& parts = node.parts;
  if (node.ends != Ends::some) {
    to.push_back(std::move(node));
    return true;
  }
  if (!node.ordered)
    std::stable_sort(parts.begin(), parts.end(), fewer_ends);
  else if (fewer_ends(parts.back(), parts.front()))
    std::reverse(parts.begin(), parts.end());
  if (!std::is_sorted(parts.begin(), parts.end(), fewer_ends)) return false;
  for (auto part = parts.begin(), after = part; part != parts.end(); part = after) {
    after = std::upper_bound(part, parts.end(), *part, fewer_ends);
    if (part->ends == Ends::some) {
      if (after - part > 1 || !split(std::move(*part), to)) return false;
    } else if (node.ordered) {
      std::move(part, after, std::back_inserter(to));
    } else {
      to.push_back(any_order(
          std::vector<Node>(std::make_move_iterator(part), std::make_move_iterator(after))));
    }
  }
  return true;
}

// Brings buffers that end together, and puts those that begin in their place.
bool replace(Node& node, Change& change) {
  std::vector<Node>& parts = node.parts;
  if (node.ends == Ends::all) {
    append_buffers(node, change.ended);
    node = any_order(change.begun);
    return true;
  }
  if (std::count_if(parts.begin(), parts.end(), has_ends) == 1)
    return replace(*std::find_if(parts.begin(), parts.end(), has_ends), change);
  std::vector<Node> others;
  if (!node.ordered) {
    std::stable_sort(parts.begin(), parts.end(), fewer_ends);
    const auto some = std::find_if(parts.begin(), parts.end(), has_ends);
    others.assign(std::make_move_iterator(parts.begin()), std::make_move_iterator(some));
    parts.erase(parts.begin(), some);
    // Two parts at most have buffers that stay: they go to the two sides.
    if (parts[0].ends == Ends::some) std::rotate(parts.begin(), parts.begin() + 1, parts.end());
  }
  std::vector<Node> line;
  bool after_ends = false;
  for (Node& part : parts) {
    const auto from = static_cast<std::ptrdiff_t>(line.size());
    const bool ends = has_ends(part);
    if (!split(std::move(part), line)) return false;
    if (after_ends && ends) std::reverse(line.begin() + from, line.end());
    after_ends = after_ends || ends;
  }
  const auto first = std::find_if(line.begin(), line.end(), has_ends);
  const auto end = std::find_if(first, line.end(), lacks_ends);
  if (std::any_of(end, line.end(), has_ends)) return false;
  for (auto part = first; part != end; ++part) append_buffers(*part, change.ended);
  if (first != line.begin()) append_buffers(first[-1], change.below);
  if (end != line.end()) append_buffers(*end, change.above);
  *first = any_order(change.begun);
  line.erase(first + 1, end);
  others.push_back(line.size() == 1 ? std::move(line[0]) : Node{0, std::move(line), true});
  node = any_order(std::move(others));
  return true;
}

}  // namespace

bool place_tightly(std::span<const Lifetime> buffers, std::size_t bound,
                   std::vector<std::size_t>& offsets) {
  std::map<std::size_t, Change> changes;
  std::map<std::size_t, std::size_t> begun_bytes, ended_bytes;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    changes[buffers[b].first].begun.push_back(b);
    begun_bytes[buffers[b].first] += buffers[b].bytes;
    ended_bytes[buffers[b].end] += buffers[b].bytes;
  }
  const auto start = changes.begin();
  if (begun_bytes[start->first] > bound) return false;
  Node all = any_order(start->second.begun);
  for (auto at = std::next(start); at != changes.end(); ++at) {
    auto& [step, change] = *at;
    if (begun_bytes[step] != ended_bytes[step]) return false;
    mark(all, buffers, step);
    if (!replace(all, change)) return false;
  }
  const auto stack = [&](const Indices& upwards, std::size_t from) {
    for (const std::uint32_t b : upwards) offsets[b] = std::exchange(from, from + buffers[b].bytes);
  };
  Indices last;
  append_buffers(all, last);
  stack(last, 0);
  for (auto at = std::prev(changes.end()); at != start; --at) {
    Change& change = at->second;
    const std::size_t from = offsets[*std::min_element(
        change.begun.begin(), change.begun.end(),
        [&](std::uint32_t a, std::uint32_t b) { return offsets[a] < offsets[b]; })];
    const bool turned = change.below.empty()
                            ? !change.above.empty() && offsets[change.above[0]] < from
                            : offsets[change.below[0]] > from;
    if (turned) std::reverse(change.ended.begin(), change.ended.end());
    stack(change.ended, from);
  }
  return true;
}

}  // namespace ebb::memory::detail
