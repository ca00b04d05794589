// See waiting_queue.h.
#include "engine/scheduler/waiting_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace headrace {
namespace {

/// Lines of owners who have nothing here and whose tag is not ahead need not be kept; they are
/// looked for when there are this many.
constexpr size_t kManyLines = 1024;
/// A request that names no end counts as one of this many tokens to generate.
constexpr int64_t kUsualTokens = 256;

auto order_of(const Sequence& sequence) {
  return std::tuple(sequence.key.priority, sequence.key.tag, sequence.stream->request_id(),
                    sequence.choice);
}

bool comes_before(const Sequence* a, const Sequence* b) {
  return order_of(*a) < order_of(*b);
}

double cost_of(const Sequence& sequence) {
  const int64_t wanted = sequence.request->stop.max_tokens;
  return static_cast<double>(sequence.num_prompt_tokens() + (wanted < 0 ? kUsualTokens : wanted));
}

}  // namespace

int32_t WaitingQueue::priority_at(const Sequence& sequence, int64_t now_ns) const {
  const int64_t since_ns =
      std::max(sequence.times.submitted_ns, sequence.key.line->last_admission_ns);
  const int64_t waited = std::max<int64_t>(0, now_ns - since_ns);
  const int64_t classes = std::min<int64_t>(waited / aging_ns_, kMaxPriority - kMinPriority);
  return std::max(kMinPriority, sequence.request->priority - static_cast<int32_t>(classes));
}

void WaitingQueue::set_tag(const std::vector<Sequence*>& choices) {
  if (lines_.size() >= kManyLines) {
    std::erase_if(lines_, [&](const auto& entry) {
      return entry.second.use_count() == 1 && entry.second->next_tag <= virtual_time_;
    });
  }
  const Request& request = *choices.front()->request;
  auto& line = lines_[{request.owner, request.priority}];
  if (line == nullptr) line = std::make_shared<OwnerLine>();
  const double tag = std::max(line->next_tag, virtual_time_);
  line->next_tag = tag;
  for (Sequence* sequence : choices) {
    sequence->key.tag = tag;
    sequence->key.line = line;
    line->next_tag += cost_of(*sequence);
  }
}

void WaitingQueue::add(Sequence& sequence, int64_t now_ns) noexcept {
  sequence.key.priority = priority_at(sequence, now_ns);
  const auto at = std::upper_bound(sequences_.begin(), sequences_.end(), &sequence, comes_before);
  sequences_.insert(at, &sequence);
  if (sequence.key.line->num_waiting++ == 0) ++num_active_lines_;
}

void WaitingQueue::remove(Sequence& sequence) {
  const auto at = std::lower_bound(sequences_.begin(), sequences_.end(), &sequence, comes_before);
  HEADRACE_CHECK(at != sequences_.end() && *at == &sequence);
  sequences_.erase(at);
  if (--sequence.key.line->num_waiting == 0) --num_active_lines_;
}

void WaitingQueue::note_admission(Sequence& sequence, int64_t now_ns) {
  virtual_time_ = std::max(virtual_time_, sequence.key.tag);
  virtual_time_ += cost_of(sequence) / static_cast<double>(1 + num_active_lines_);
  sequence.key.line->last_admission_ns = now_ns;
}

void WaitingQueue::age(int64_t now_ns) {
  if (sequences_.empty() || now_ns < next_aging_ns_) return;
  next_aging_ns_ = now_ns + aging_ns_ / 16;
  bool has_changed = false;
  for (Sequence* sequence : sequences_) {
    const int32_t priority = priority_at(*sequence, now_ns);
    has_changed |= priority != sequence->key.priority;
    sequence->key.priority = priority;
  }
  if (has_changed) std::sort(sequences_.begin(), sequences_.end(), comes_before);
}

void WaitingQueue::check_invariants() const {
  HEADRACE_CHECK(std::is_sorted(sequences_.begin(), sequences_.end(), comes_before));
  for (const Sequence* sequence : sequences_) {
    HEADRACE_CHECK(!sequence->is_running && !sequence->has_ended);
    HEADRACE_CHECK(sequence->cached.tables.empty());
    HEADRACE_CHECK_EQ(sequence->num_computed, 0);
  }
}

}  // namespace headrace
