// A server for tests: the checksum model (engine/simulation/checksum_engine.h) behind HTTP, on
// whose answers every token can be checked, with steps that hang or fail when they are told to.
//
//   checksum_server --port N [--option N]...    (the options are those of kOptions below)
//
// Token i is the character U+4E00 + i, so that text tells the ids. Lines on standard input are
// answered by one line each on standard output:
//   release                        what hangs goes on: steps, and texts with the holding token
//   hang, fail                     the next step does so
//   expect SEED CHOICE COUNT TEXT  what the model says to the prompt TEXT
//   drain                          new requests are answered 503
//   texts                          how many texts were tokenised so far
// The end of standard input ends the server.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/read_number.h"
#include "engine/simulation/checksum_engine.h"
#include "server/server.h"

namespace headrace {
namespace {

constexpr int64_t kVocab = 1000;
constexpr const char* kLighter = "lighter";
constexpr uint32_t kFirstCharacter = 0x4E00;
constexpr int kBytesEach = 3;  ///< of a character in UTF-8

std::string text_of(TokenId id) {
  const uint32_t code = kFirstCharacter + static_cast<uint32_t>(id);
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

/// The id of the character at the begin of `text`, or -1.
TokenId id_of(std::string_view text) {
  if (text.size() < kBytesEach || (static_cast<uint8_t>(text[0]) & 0xF0) != 0xE0) return -1;
  const auto bits = [&](int i, uint8_t mask) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[static_cast<size_t>(i)]) & mask);
  };
  const uint32_t code = bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F);
  return code >= kFirstCharacter && code < kFirstCharacter + kVocab
             ? static_cast<TokenId>(code - kFirstCharacter)
             : -1;
}

/// What holds a thread until it is opened.
class Gate {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

/// A character is a token; any other byte is the token of its number.
class CharacterTokenizer final : public Tokenizer {
 public:
  /// `holding`: a token whose text waits for `gate` (which may be null then: -1).
  explicit CharacterTokenizer(TokenId holding = -1, Gate* gate = nullptr)
      : holding_(holding), gate_(gate) {
    fingerprint_.digest = "characters";
    for (TokenId id = 0; id < kVocab; ++id) pieces_.push_back(text_of(id));
  }
  std::string description() const override { return "characters"; }
  int64_t vocab_size() const override { return kVocab; }
  const SpecialTokens& special() const override { return special_; }
  TokenKind kind(TokenId /*id*/) const override { return TokenKind::normal; }
  std::string_view piece(TokenId id) const override { return pieces_[static_cast<size_t>(id)]; }
  std::string bytes(TokenId id) const override { return std::string(piece(id)); }
  std::optional<TokenId> find(std::string_view piece) const override {
    const TokenId id = id_of(piece);
    if (id < 0 || piece.size() != kBytesEach) return std::nullopt;
    return id;
  }
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions&) const override {
    ++num_texts_;
    std::vector<TokenId> out;
    while (!text.empty()) {
      const TokenId id = id_of(text);
      if (id >= 0 && id == holding_) gate_->wait();
      out.push_back(id >= 0 ? id : static_cast<TokenId>(static_cast<uint8_t>(text[0])));
      text.remove_prefix(id >= 0 ? kBytesEach : 1);
    }
    return out;
  }
  Result<std::vector<TokenId>> encode(std::span<const TextSegment> segments, bool) const override {
    std::string text;
    for (const TextSegment& each : segments) text += each.text;
    return encode(text, EncodeOptions());
  }
  std::string decode(std::span<const TokenId> ids, bool /*skip_special*/) const override {
    std::string out;
    for (const TokenId id : ids) out += piece(id);
    return out;
  }
  const TokenizerFingerprint& fingerprint() const override { return fingerprint_; }
  int64_t num_texts() const { return num_texts_; }

 private:
  mutable std::atomic<int64_t> num_texts_{0};
  const TokenId holding_;
  Gate* const gate_;
  SpecialTokens special_;
  TokenizerFingerprint fingerprint_;
  std::vector<std::string> pieces_;
};

struct Args {
  int64_t port = 0;
  int64_t np = 16;
  int64_t context = 2048;
  int64_t kv_tokens = 0;  ///< 0: for all contexts
  int64_t chunk_tokens = 256;
  int64_t step_delay_us = 0;
  int64_t row_delay_us = 0;
  int64_t throwing_token = -1;
  int64_t spoiled_token = -1;
  int64_t hanging_token = -1;
  int64_t holding_token = -1;
  int64_t max_queue = 1024;
  int64_t max_waiting = 0;      ///< of the engine; 0: as many as the server lets in
  int64_t lighter = 0;          ///< 1: a second model, "lighter", with room for all
  int64_t lighter_for_all = 0;  ///< 1: it may answer all requests
  int64_t max_unsent_bytes = 256 << 10;
  int64_t max_unread_bytes = 64 << 10;
  int64_t stuck_after_ms = 10'000;
  int64_t stall_ms = 30'000;
  int64_t body_ms = 30'000;
  int64_t header_ms = 10'000;
  int64_t keep_alive_ms = 15'000;
  int64_t text_tools = 64;
  int64_t waiting_bytes = 64 << 20;
  int64_t body_bytes_of_all = 256 << 20;
  int64_t requests_of_key = 0;  ///< of each of the keys "a" and "b"; 0: there are no keys
};

struct NumberOption {
  std::string_view name;
  int64_t Args::*target;
};

constexpr NumberOption kOptions[] = {
    {"--port", &Args::port},
    {"--np", &Args::np},
    {"--context", &Args::context},
    {"--kv-tokens", &Args::kv_tokens},
    {"--chunk-tokens", &Args::chunk_tokens},
    {"--step-delay-us", &Args::step_delay_us},
    {"--row-delay-us", &Args::row_delay_us},
    {"--throwing-token", &Args::throwing_token},
    {"--spoiled-token", &Args::spoiled_token},
    {"--hanging-token", &Args::hanging_token},
    {"--holding-token", &Args::holding_token},
    {"--max-queue", &Args::max_queue},
    {"--max-waiting", &Args::max_waiting},
    {"--lighter", &Args::lighter},
    {"--lighter-for-all", &Args::lighter_for_all},
    {"--max-unsent-bytes", &Args::max_unsent_bytes},
    {"--max-unread-bytes", &Args::max_unread_bytes},
    {"--stuck-after-ms", &Args::stuck_after_ms},
    {"--stall-ms", &Args::stall_ms},
    {"--body-ms", &Args::body_ms},
    {"--header-ms", &Args::header_ms},
    {"--keep-alive-ms", &Args::keep_alive_ms},
    {"--text-tools", &Args::text_tools},
    {"--waiting-bytes", &Args::waiting_bytes},
    {"--body-bytes-of-all", &Args::body_bytes_of_all},
    {"--requests-of-key", &Args::requests_of_key},
};

bool parse_args(int argc, char** argv, Args& args) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto* found =
        std::find_if(std::begin(kOptions), std::end(kOptions),
                     [&](const NumberOption& each) { return each.name == argv[i]; });
    if (found == std::end(kOptions) ||
        read_number(argv[i + 1], args.*found->target) != std::errc()) {
      return false;
    }
  }
  return argc % 2 == 1;
}

ChecksumEngineOptions engine_options(const Args& args) {
  ChecksumEngineOptions out;
  out.vocab_size = kVocab;
  out.step_delay = std::chrono::microseconds(args.step_delay_us);
  out.row_delay = std::chrono::microseconds(args.row_delay_us);
  out.throwing_token = static_cast<TokenId>(args.throwing_token);
  out.spoiled_token = static_cast<TokenId>(args.spoiled_token);
  out.hanging_token = static_cast<TokenId>(args.hanging_token);
  out.engine.context = args.context;
  out.engine.max_sequences = args.np;
  out.engine.kv_tokens = args.kv_tokens;
  out.engine.chunk_tokens = args.chunk_tokens;
  out.engine.max_waiting = args.max_waiting > 0 ? args.max_waiting : args.max_queue + args.np;
  out.engine.max_unread_bytes = args.max_unread_bytes;
  return out;
}

server::ApiKey key_of_name(const std::string& name, const Args& args) {
  server::ApiKey key = server::api_key(name, name);
  key.max_requests = args.requests_of_key;
  return key;
}

server::ServerOptions server_options(const Args& args) {
  using std::chrono::milliseconds;
  server::ServerOptions out;
  out.http.port = static_cast<uint16_t>(args.port);
  out.http.limits.stall_time = milliseconds(args.stall_ms);
  out.http.limits.body_time = milliseconds(args.body_ms);
  out.http.limits.header_time = milliseconds(args.header_ms);
  out.http.limits.max_body_bytes_of_all = static_cast<size_t>(args.body_bytes_of_all);
  out.max_text_tools = args.text_tools;
  out.admission.max_waiting_bytes = args.waiting_bytes;
  if (args.requests_of_key > 0) out.keys = {key_of_name("a", args), key_of_name("b", args)};
  out.admission.max_requests = args.max_queue + args.np;
  out.max_unsent_bytes = static_cast<size_t>(args.max_unsent_bytes);
  out.stuck_after = milliseconds(args.stuck_after_ms);
  out.keep_alive = milliseconds(args.keep_alive_ms);
  return out;
}

std::unique_ptr<server::ModelEntry> entry_of(const Args& args, std::shared_ptr<Engine> engine,
                                             std::shared_ptr<const CharacterTokenizer> tokenizer) {
  api::ServedModel served;
  served.name = engine->model().name;
  served.fingerprint = "checksum";
  served.tokenizer = std::move(tokenizer);
  served.vocab_size = kVocab;
  served.max_context = engine->max_context();
  served.answers_any_name = args.lighter == 0;
  if (args.lighter != 0 && served.name != kLighter) served.lighter_name = kLighter;
  auto entry = std::make_unique<server::ModelEntry>();
  entry->served = std::make_shared<const api::ServedModel>(std::move(served));
  entry->engine = std::move(engine);
  entry->max_sequences = args.np;
  return entry;
}

std::string expected_text(std::istringstream& words) {
  uint64_t seed = 0;
  int32_t choice = 0;
  int64_t count = 0;
  std::string prompt;
  words >> seed >> choice >> count >> prompt;
  const CharacterTokenizer tokenizer;
  const auto ids = tokenizer.encode(prompt, EncodeOptions());
  return tokenizer.decode(expected_tokens(*ids, seed, count, kVocab, {}, choice), false);
}

/// Until the end of the standard input.
void obey(ChecksumFaults& faults, Gate& gate, const CharacterTokenizer& tokenizer,
          server::Server& server) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    std::string answer = "ok";
    if (command == "release") {
      faults.release();
      gate.open();
    } else if (command == "hang") {
      faults.hang_next_step();
    } else if (command == "fail") {
      faults.fail_next_step();
    } else if (command == "drain") {
      server.drain();
    } else if (command == "texts") {
      answer = std::to_string(tokenizer.num_texts());
    } else if (command == "expect") {
      answer = expected_text(words);
    } else {
      answer = "unknown";
    }
    std::cout << answer << std::endl;
  }
}

/// The model that answers where the first has no room, if there is to be one.
Result<void> add_lighter(const Args& args,
                         const std::shared_ptr<const CharacterTokenizer>& tokenizer,
                         std::vector<std::unique_ptr<server::ModelEntry>>& models) {
  if (args.lighter == 0) return {};
  ChecksumEngineOptions options = engine_options(args);
  options.name = kLighter;
  options.hanging_token = -1;
  options.engine.max_waiting = args.max_queue + args.np;
  HEADRACE_ASSIGN(auto made, make_checksum_engine(options));
  models.push_back(entry_of(args, std::move(made.engine), tokenizer));
  models.front()->lighter = models.back().get();
  models.front()->lighter_for_all = args.lighter_for_all != 0;
  return {};
}

int run(const Args& args) {
  Gate gate;
  auto made = make_checksum_engine(engine_options(args));
  if (!made.ok()) {
    std::cerr << made.error().to_string() << '\n';
    return 1;
  }
  auto server = server::start_server(server_options(args), nullptr);
  if (!server.ok()) {
    std::cerr << server.error().to_string() << '\n';
    return 1;
  }
  std::vector<std::unique_ptr<server::ModelEntry>> models;
  const auto tokenizer =
      std::make_shared<const CharacterTokenizer>(static_cast<TokenId>(args.holding_token), &gate);
  models.push_back(entry_of(args, std::move(made->engine), tokenizer));
  if (auto added = add_lighter(args, tokenizer, models); !added.ok()) {
    std::cerr << added.error().to_string() << '\n';
    return 1;
  }
  (*server)->set_models(std::move(models));
  std::cerr << "checksum_server serves at port " << (*server)->port() << std::endl;
  obey(*made->faults, gate, *tokenizer, **server);
  made->faults->release();
  gate.open();
  (*server)->stop();
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::Args args;
  if (!headrace::parse_args(argc, argv, args)) {
    std::cerr << "usage: checksum_server --port N [--option N]...\n";
    return 2;
  }
  return headrace::run(args);
}
