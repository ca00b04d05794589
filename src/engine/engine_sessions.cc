// See engine_impl.h. Here: session files. What can be done on the caller's thread is: looking at
// the file, its checksum, making it durable.
#include <exception>
#include <future>
#include <new>
#include <utility>

#include "base/os/mapped_file.h"
#include "engine/engine_impl.h"

namespace headrace {
namespace {

/// Nothing that is thrown leaves the engine.
template <class Work>
auto guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory", "", ""};  // needs none
  } catch (const std::future_error&) {
    return Error{ErrorCode::cancelled, "the engine is being stopped", "", ""};
  } catch (const std::exception& fault) {
    return Error{ErrorCode::internal, std::string("the session failed: ") + fault.what(), "", ""};
  }
}

Error in_file(Error error, const std::string& path) {
  if (error.where.empty()) error.where = path;
  return error;
}

std::string cut(std::string_view text) {
  return std::string(text.substr(0, kMaxSessionTextBytes));
}

}  // namespace

// Where no thread was started, who steps by hand is between two steps.
void EngineImpl::run_between_steps(FunctionRef<void()> work) {
  const auto all = [&] {
    try {
      work();
    } catch (...) {
      check_books();
      publish();
      throw;
    }
    publish();
  };
  if (!thread_.joinable()) {
    all();
    return;
  }
  std::packaged_task<void()> task(all);
  auto done = task.get_future();
  inbox_->post(std::move(task));
  done.get();
}

SessionOrigin EngineImpl::origin() const {
  SessionOrigin out;
  out.model = cut(model().name);
  out.model_fingerprint = cut(options_.model_fingerprint);
  out.tokenizer_fingerprint = cut(options_.tokenizer_fingerprint);
  out.device = cut(parts_.runner->device());
  out.kv_type = kv_type_name(options_.kv_type);
  out.block_tokens = options_.block_tokens;
  const auto& groups = scheduler_.cache().groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    out.groups.push_back({groups[i].geometry().window, parts_.runner->block_bytes(i)});
  }
  return out;
}

Result<void> EngineImpl::check_sessions_work() const {
  if (options_.prefix_cache) return {};
  return Error{ErrorCode::unsupported, "sessions need the prefix cache, which is off", "",
               "switch it on"};
}

Result<int64_t> EngineImpl::save_session(std::span<const TokenId> tokens,
                                         const std::string& cache_scope, const std::string& path,
                                         std::string_view note) {
  return guarded([&] { return save_prefix(tokens, cache_scope, path, note); });
}

Result<int64_t> EngineImpl::save_prefix(std::span<const TokenId> tokens,
                                        const std::string& cache_scope, const std::string& path,
                                        std::string_view note) {
  HEADRACE_TRY(check_sessions_work());
  if (note.size() > kMaxSessionNoteBytes) {
    return Error{ErrorCode::invalid_argument,
                 "a session's note of " + std::to_string(note.size()) + " bytes; " +
                     std::to_string(kMaxSessionNoteBytes) + " are allowed",
                 "note", ""};
  }
  HEADRACE_ASSIGN(SessionWriter writer, SessionWriter::create(path));
  SessionHeader header;
  header.origin = origin();
  header.note = note;
  const BlockHash root = scheduler_.cache().root(cache_scope);
  Result<void> written;
  run_between_steps([&] {
    const FoundPrefix found = scheduler_.cache().locate(root, tokens);
    header.tokens.assign(tokens.begin(), tokens.begin() + found.num_tokens);
    for (const PrefixBlocks& blocks : found.groups) {
      header.blocks.push_back({blocks.first, static_cast<int64_t>(blocks.blocks.size())});
    }
    written = write_prefix(found, header, writer);
  });
  HEADRACE_TRY(std::move(written));
  HEADRACE_TRY(writer.finish());
  return static_cast<int64_t>(header.tokens.size());
}

Result<void> EngineImpl::write_prefix(const FoundPrefix& found, const SessionHeader& header,
                                      SessionWriter& writer) const {
  HEADRACE_TRY(writer.begin(header));
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < found.groups.size(); ++i) {
    buffer.resize(static_cast<size_t>(header.origin.groups[i].block_bytes));
    int64_t at = found.groups[i].first * options_.block_tokens;
    for (const int32_t block : found.groups[i].blocks) {
      const int64_t size = std::min(options_.block_tokens, found.num_tokens - at);
      parts_.runner->read_block(i, block, size, buffer);
      HEADRACE_TRY(writer.add_block(buffer));
      at += size;
    }
  }
  return {};
}

Result<LoadedSession> EngineImpl::load_session(const std::string& path,
                                               const std::string& cache_scope) {
  return guarded([&]() -> Result<LoadedSession> {
    auto loaded = load_prefix(path, cache_scope);
    if (!loaded.ok()) return in_file(std::move(loaded).error(), path);
    return loaded;
  });
}

Result<LoadedSession> EngineImpl::load_prefix(const std::string& path,
                                              const std::string& cache_scope) {
  HEADRACE_TRY(check_sessions_work());
  HEADRACE_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  HEADRACE_ASSIGN(SessionFile file, read_session(mapped.bytes()));
  HEADRACE_TRY(check_origin(file.header.origin, origin()));
  const std::vector<TokenId>& tokens = file.header.tokens;
  for (const TokenId id : tokens) {
    if (id < model().vocab_size) continue;
    return Error{ErrorCode::corrupt_data,
                 "token id " + std::to_string(id) + " is outside the vocabulary of " +
                     std::to_string(model().vocab_size),
                 "", "delete it, or give another name"};
  }
  std::vector<int64_t> first;
  for (const SessionHeader::Blocks& blocks : file.header.blocks) first.push_back(blocks.first);
  const BlockHash root = scheduler_.cache().root(cache_scope);
  Result<bool> restored = false;
  run_between_steps([&] {
    restored = scheduler_.restore_prefix(
        root, tokens, first,
        [&](size_t group, int64_t index, int32_t block) {
          parts_.runner->write_block(group, block, file.block(group, index));
        },
        [&] { return mapped.check_unchanged(); });
  });
  HEADRACE_ASSIGN(const bool has_room, std::move(restored));
  if (!has_room) return no_room_for(tokens.size());
  return LoadedSession{std::move(file.header.tokens), std::move(file.header.note)};
}

Error EngineImpl::no_room_for(size_t num_tokens) const {
  const bool ever_fits = static_cast<int64_t>(num_tokens) <= capacity_;
  return {ErrorCode::resource_exhausted,
          "the session has " + std::to_string(num_tokens) + " tokens, and the KV cache " +
              (ever_fits ? "is in use by others" : "has room for " + std::to_string(capacity_)),
          "",
          ever_fits ? "try again later"
                    : "open the model with a larger context (-c), or give another name"};
}

}  // namespace headrace
