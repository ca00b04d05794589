// See answered_lines.h.
#include "api/answered_lines.h"

#include <algorithm>

#include "api/in_quotes.h"

namespace headrace::api {
namespace {

constexpr size_t kMaxLineBytes = size_t{256} << 20;

/// A fingerprint ends with what stands for the model.
std::string_view model_part(std::string_view fingerprint) {
  return fingerprint.substr(fingerprint.rfind('-') + 1);
}

Error mismatch(std::string message) {
  return {ErrorCode::mismatch, std::move(message), "", ""};
}

}  // namespace

Result<AnsweredLines> AnsweredLines::read(InputStream& file, const ServedModel& model) {
  AnsweredLines out;
  std::string line;
  for (;;) {
    HEADRACE_ASSIGN(const auto outcome, file.read_line(line, kMaxLineBytes));
    if (outcome == InputStream::Line::none || outcome == InputStream::Line::unended) break;
    auto added = outcome == InputStream::Line::whole
                     ? out.add(line, model)
                     : Result<void>(mismatch("is no line of a file of batch answers"));
    if (!added.ok()) {
      return std::move(added).error().at("line " + std::to_string(out.num_lines() + 1));
    }
    out.whole_bytes_ = file.line_bytes();
  }
  std::sort(out.entries_.begin(), out.entries_.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  out.num_left_ = out.num_lines();
  return out;
}

Result<void> AnsweredLines::add(std::string_view line, const ServedModel& model) {
  auto answer = read_batch_answer(line);
  if (!answer.ok()) return mismatch(std::move(answer).error().message);
  if (!answer->model.empty()) {
    const bool is_named = answer->model == model.name || model.find_adapter(answer->model) >= 0;
    if (!is_named || model_part(answer->fingerprint) != model_part(model.fingerprint)) {
      return mismatch("was answered by the model " + in_quotes(answer->model) +
                      (is_named ? " of another file" : ", not by " + in_quotes(model.name)));
    }
    if (answer->fingerprint != model.fingerprint) other_fingerprint_ = answer->fingerprint;
  }
  Entry entry{.key = answer->key, .taken = {}, .is_taken = false};
  if (answer->custom_id) entry.taken = {digest_of(*answer->custom_id), true};
  entries_.push_back(entry);
  num_failed_ += answer->has_failed ? 1 : 0;
  return {};
}

std::optional<AnsweredLines::Taken> AnsweredLines::take(const Digest& key) {
  auto entry = std::lower_bound(entries_.begin(), entries_.end(), key,
                                [](const Entry& a, const Digest& b) { return a.key < b; });
  while (entry != entries_.end() && entry->key == key && entry->is_taken) ++entry;
  if (entry == entries_.end() || entry->key != key) return std::nullopt;
  entry->is_taken = true;
  --num_left_;
  return entry->taken;
}

void AnsweredLines::reset() {
  for (Entry& entry : entries_) entry.is_taken = false;
  num_left_ = num_lines();
}

}  // namespace headrace::api
