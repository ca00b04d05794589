// See simulation_sessions.h.
#include "engine/simulation/simulated_sessions.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace headrace {

SimulatedSessions::~SimulatedSessions() {
  for (size_t i = 0; i < kNumFiles; ++i) {
    std::error_code ignored;
    if (files_[i].is_there) std::filesystem::remove(path(i), ignored);
  }
}

// An error must have its reason: memory that was made to run out, blocks that others hold.
template <class T>
bool SimulatedSessions::is_done(const Result<T>& result, int64_t fails_at) const {
  if (result.ok()) return true;
  const Error& error = result.error();
  const bool is_short = error.code == ErrorCode::resource_exhausted;
  const bool is_memory = is_short && fails_at >= 0 && error.message == "out of memory";
  const bool is_busy = is_short && !engine_.scheduler().is_idle() &&
                       error.message.find("in use by others") != std::string::npos;
  if (is_memory || is_busy) return false;
  throw std::runtime_error("a session failed: " + error.to_string());
}

void SimulatedSessions::save(size_t which, const std::vector<TokenId>& tokens,
                             const std::string& scope, int64_t fails_at) {
  const std::string note(which, 'x');
  const std::string file = path(which);
  if (fails_at >= 0) fail_allocation_(fails_at);
  const auto saved = engine_.save_session(tokens, scope, file, note);
  if (fails_at >= 0) fail_allocation_(-1);
  engine_.scheduler().check_invariants();
  if (!is_done(saved, fails_at)) return;
  if (*saved < 0 || *saved > static_cast<int64_t>(tokens.size())) {
    throw std::runtime_error("more was saved than there is");
  }
  files_[which] = {true, {tokens.begin(), tokens.begin() + *saved}, scope, note};
}

void SimulatedSessions::load(size_t which, int64_t fails_at) {
  const File& file = files_[which];
  if (!file.is_there) return;
  const std::string from = path(which);
  if (fails_at >= 0) fail_allocation_(fails_at);
  const auto loaded = engine_.load_session(from, file.scope);
  if (fails_at >= 0) fail_allocation_(-1);
  engine_.scheduler().check_invariants();
  if (!is_done(loaded, fails_at)) return;
  if (loaded->tokens != file.tokens || loaded->note != file.note) {
    throw std::runtime_error("another session was loaded than was saved");
  }
  const KvCache& cache = engine_.scheduler().cache();
  const FoundPrefix found = cache.locate(cache.root(file.scope), file.tokens);
  if (found.num_tokens != static_cast<int64_t>(file.tokens.size())) {
    throw std::runtime_error("a session that was loaded is not found");
  }
  ++num_loaded_;
}

}  // namespace headrace
