// See local_model.h.
#include "bindings/python/native/local_model.h"

#include <algorithm>

#include "app/memory_plan.h"
#include "app/sampling_defaults.h"
#include "base/saturating.h"

namespace headrace::python {
namespace {

using std::chrono::milliseconds;

/// How soon a stop string is seen in the text of a request that nobody waits for just now, and how
/// soon others are read: long before so much is unread that they pause.
constexpr milliseconds kLookForStops{5};
constexpr milliseconds kReadAfter{20};

Error closed() {
  return {ErrorCode::invalid_argument, "the model is closed", "", "open it again"};
}

Error after_fork() {
  return {ErrorCode::invalid_argument, "the model was opened before this process was forked", "",
          "open it in the child, or start the child with the method \"spawn\""};
}

}  // namespace

Result<std::shared_ptr<LocalModel>> LocalModel::open(const std::string& path,
                                                     const OpenOptions& options,
                                                     EngineOptions engine_options) {
  std::shared_ptr<LocalModel> model(new LocalModel);
  HEADRACE_ASSIGN(model->opened_, open_model(path, options));
  HEADRACE_ASSIGN(model->engine_, model->opened_->start_engine(std::move(engine_options)));
  OpenedModel& opened = *model->opened_;
  model->default_sampling_ = sampling_defaults(opened.checkpoint->metadata(), opened.warnings);
  return model;
}

LocalModel::~LocalModel() {
  if (!is_abandoned_->load()) {
    close();
    return;
  }
  static_cast<void>(engine_.release());
  static_cast<void>(opened_.release());
}

LocalModel::Use::~Use() {
  if (model_ != nullptr) model_->end_use();
}

Result<LocalModel::Use> LocalModel::use() {
  if (is_abandoned_->load()) return after_fork();
  const std::lock_guard lock(mutex_);
  if (is_closing_) return closed();
  users_.insert(std::this_thread::get_id());
  return Use(*this);
}

LocalModel::Use LocalModel::use_for_waiting() {
  const std::lock_guard lock(mutex_);
  users_.insert(std::this_thread::get_id());
  return Use(*this);
}

void LocalModel::end_use() {
  if (is_abandoned_->load()) return;
  {
    const std::lock_guard lock(mutex_);
    users_.erase(users_.find(std::this_thread::get_id()));
    if (is_closing_ && users_.empty()) free_all();
  }
  changed_.notify_all();
}

uint64_t LocalModel::session_bytes(int64_t num_tokens, int64_t num_logit_rows) const {
  MemoryNeeds needs;
  const auto caches = opened_->model->cache_specs();
  needs.caches.assign(caches.begin(), caches.end());
  needs.kv_type = opened_->kv_type;
  needs.block_tokens = opened_->options.block_tokens;
  needs.chunk_tokens = opened_->options.chunk_tokens;
  const uint64_t row_bytes =
      static_cast<uint64_t>(opened_->model->info().vocab_size) * sizeof(float);
  return saturating_add(kv_bytes(needs, num_tokens),
                        saturating_mul(static_cast<uint64_t>(num_logit_rows), row_bytes));
}

std::vector<std::shared_ptr<Run>> LocalModel::unfinished_runs() {
  std::erase_if(runs_, [](const auto& run) { return run->wait_for_end(milliseconds(0)); });
  return {runs_.begin(), runs_.end()};
}

std::optional<Result<std::shared_ptr<Run>>> LocalModel::try_submit(Request& request,
                                                                   const RunOptions& options,
                                                                   milliseconds time) {
  std::unique_lock lock(mutex_);
  const auto may_go = [this] { return !session_has_turn_ || is_closing_; };
  if (!changed_.wait_for(lock, time, may_go)) return std::nullopt;
  if (is_closing_) return Result<std::shared_ptr<Run>>(closed());
  auto stream = engine_->submit(std::move(request));
  if (!stream.ok()) return Result<std::shared_ptr<Run>>(std::move(stream).error());
  auto run =
      std::make_shared<Run>(std::move(stream).value(), opened_->tokenizer, options, is_abandoned_);
  runs_.insert(run);
  if (run->has_stop_strings() || !run->keeps_pieces()) read_runs_.insert(run);
  return Result<std::shared_ptr<Run>>(std::move(run));
}

// Whether any of them may end at a stop string.
bool LocalModel::read_for_others() {
  const std::lock_guard lock(mutex_);
  std::erase_if(read_runs_, [](const auto& run) { return run->wait_for_end(milliseconds(0)); });
  return std::any_of(read_runs_.begin(), read_runs_.end(),
                     [](const auto& run) { return run->has_stop_strings(); });
}

bool LocalModel::wait_for_end(Run& run, milliseconds time) {
  for (;;) {
    const milliseconds now = std::min(time, read_for_others() ? kLookForStops : kReadAfter);
    if (run.wait_for_end(now)) return true;
    time -= now;
    if (time.count() <= 0) return false;
  }
}

void LocalModel::drop(const std::shared_ptr<Run>& run) {
  if (is_abandoned_->load()) return;
  run->cancel();
  const std::lock_guard lock(mutex_);
  if (!run->wait_for_end(milliseconds(0))) return;
  runs_.erase(run);
  read_runs_.erase(run);
}

LocalModel::SessionTurn::~SessionTurn() {
  if (!is_first_) return;
  {
    const std::lock_guard lock(model_.mutex_);
    model_.session_has_turn_ = false;
  }
  model_.changed_.notify_all();
}

bool LocalModel::SessionTurn::wait(milliseconds time) {
  std::vector<std::shared_ptr<Run>> runs;
  {
    std::unique_lock lock(model_.mutex_);
    if (!is_first_) {
      const auto is_free = [this] { return !model_.session_has_turn_; };
      if (!model_.changed_.wait_for(lock, time, is_free)) return false;
      model_.session_has_turn_ = is_first_ = true;
    }
    runs = model_.unfinished_runs();
  }
  for (const auto& run : runs) {
    if (!run->wait_for_end(time)) return false;
  }
  return true;
}

bool LocalModel::is_closing() const {
  const std::lock_guard lock(mutex_);
  return is_closing_;
}

void LocalModel::free_all() {
  runs_.clear();
  read_runs_.clear();
  engine_.reset();
  opened_.reset();
}

void LocalModel::close() {
  if (is_abandoned_->load()) return;
  std::unique_lock lock(mutex_);
  is_closing_ = true;
  for (const auto& run : runs_) run->cancel();
  changed_.notify_all();
  const auto self = std::this_thread::get_id();
  changed_.wait(lock, [&] { return users_.size() == users_.count(self); });
  if (users_.empty()) free_all();
}

}  // namespace headrace::python
