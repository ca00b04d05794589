// Session files in the simulation: saved and loaded while others run. Owns the files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine_impl.h"

namespace headrace {

class SimulatedSessions {
 public:
  /// `prefix`: of the files' paths; empty: there are none. `fail_allocation` as in
  /// SimulationOptions.
  SimulatedSessions(EngineImpl& engine, std::string prefix,
                    const std::function<void(int64_t n)>& fail_allocation)
      : engine_(engine), prefix_(std::move(prefix)), fail_allocation_(fail_allocation) {}
  ~SimulatedSessions();
  SimulatedSessions(const SimulatedSessions&) = delete;
  SimulatedSessions& operator=(const SimulatedSessions&) = delete;

  bool are_on() const { return !prefix_.empty(); }
  /// Writes file `which`. With `fails_at` >= 0 that allocation fails. Throws std::runtime_error
  /// where something is wrong, as does load().
  void save(size_t which, const std::vector<TokenId>& tokens, const std::string& scope,
            int64_t fails_at);
  void load(size_t which, int64_t fails_at);

  int64_t num_loaded() const { return num_loaded_; }

  static constexpr size_t kNumFiles = 4;

 private:
  struct File {
    bool is_there = false;
    std::vector<TokenId> tokens;
    std::string scope;
    std::string note;
  };
  std::string path(size_t which) const { return prefix_ + std::to_string(which); }
  template <class T>
  bool is_done(const Result<T>& result, int64_t fails_at) const;

  EngineImpl& engine_;
  const std::string prefix_;
  const std::function<void(int64_t n)>& fail_allocation_;
  File files_[kNumFiles];
  int64_t num_loaded_ = 0;
};

}  // namespace headrace
