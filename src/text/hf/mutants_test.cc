// Broken tokenizer.json and tokenizer.model files: every truncation of small ones, and structured
// mutants. Each must be read, and then tokenise, or give an error of one line that says where.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/gguf_vocabulary_writer.h"
#include "text/hf/sentencepiece.h"
#include "text/hf/tokenizer_json.h"
#include "text/hf/tokenizer_json_writer.h"

namespace headrace::text {
namespace {

using nlohmann::json;

json read_golden(const std::string& name) {
  std::ifstream file(HEADRACE_SOURCE_DIR "/tests/golden/tokenizers/" + name + ".json");
  return json::parse(file);
}

void check_outcome(const Result<std::shared_ptr<const Tokenizer>>& made, size_t& num_read) {
  if (!made.ok()) {
    const std::string line = made.error().to_string();
    EXPECT_FALSE(made.error().message.empty());
    EXPECT_FALSE(made.error().where.empty()) << line;
    EXPECT_EQ(line.find('\n'), line.npos) << line;
    EXPECT_NE(made.error().code, ErrorCode::internal) << line;
    return;
  }
  ++num_read;
  Metadata metadata;
  std::deque<std::string> texts;
  if (put_gguf_vocabulary(**made, metadata, texts).ok()) {
    (void)same_as_written(**made, metadata);
    if (const auto written = write_hf_tokenizer(metadata); written.ok()) {
      EXPECT_FALSE(json::parse(written->tokenizer, nullptr, false).is_discarded());
    }
  }
  for (const bool flag : {false, true}) {
    const auto ids = (*made)->encode("The wheel  turned</s> 12\xC3\xA9\xFF!", {flag, flag});
    if (!ids.ok()) {
      EXPECT_EQ(ids.error().to_string().find('\n'), std::string::npos);
      continue;
    }
    for (const TokenId id : *ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, (*made)->vocab_size());
    }
    (*made)->decode(*ids, flag);
  }
}

Result<std::shared_ptr<const Tokenizer>> read_text(const std::string& text) {
  HfFiles files;
  files.tokenizer = text;
  return read_tokenizer_json(files, {}, "tokenizer.json");
}

Result<std::shared_ptr<const Tokenizer>> read_model_bytes(std::string_view bytes) {
  HEADRACE_ASSIGN(SentencePieceModel model, read_sentencepiece(bytes));
  return build_sentencepiece(std::move(model), HfFiles(), "tokenizer.model");
}

/// Draws from a seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  size_t below(size_t n) {
    state_ = mix_bits(state_ + 0x9E3779B97F4A7C15);
    return state_ % n;
  }

 private:
  static uint64_t mix_bits(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

// A small tokenizer with every part: the vocabulary of a fixture cut to a few tokens.
json small(const std::string& name) {
  json root = read_golden(name)["tokenizer"];
  json& model = root["model"];
  if (model["vocab"].is_array()) {
    model["vocab"].erase(model["vocab"].begin() + 40, model["vocab"].end());
    return root;
  }
  json kept = json::object();
  for (const auto& [piece, id] : model["vocab"].items()) {
    if (id.get<int>() < 300 && (id.get<int>() < 40 || piece.size() < 3)) kept[piece] = id;
  }
  model["vocab"] = kept;
  if (model.contains("merges")) {
    json merges = json::array();
    for (const json& merge : model["merges"]) {
      const std::string joined = merge[0].get<std::string>() + merge[1].get<std::string>();
      if (kept.contains(merge[0]) && kept.contains(merge[1]) && kept.contains(joined)) {
        merges.push_back(merge);
      }
    }
    model["merges"] = merges;
  }
  return root;
}

// Some place in the document; large lists are entered at a few of their entries only.
json* place_in(json& root, Dice& dice) {
  json* now = &root;
  while (now->is_structured() && !now->empty() && dice.below(5) != 0) {
    auto next = now->begin();
    std::advance(next, static_cast<ptrdiff_t>(dice.below(now->size())));
    now = &*next;
  }
  return now;
}

json odd_value(Dice& dice) {
  switch (dice.below(16)) {
    case 0:
      return nullptr;
    case 1:
      return -1;
    case 2:
      return uint64_t{1} << 63;
    case 3:
      return 4294967296;
    case 4:
      return "";
    case 5:
      return json::array();
    case 6:
      return json::object();
    case 7:
      return true;
    case 8:
      return 1e308;
    case 9:
      return "(((((*[";
    case 10:
      return json{{"Regex", "(a*)*\\p{Nope}[^"}};
    case 11:
      return json::array({0, "x", nullptr, json::array({1, 2})});
    case 12:
      return "Sequence";
    case 13:
      return json{{"type", "Metaspace"}, {"replacement", ""}};
    case 14:
      return 0;
    default:
      return std::string(3000, 'z');
  }
}

void mutate(json& root, Dice& dice) {
  json* const place = place_in(root, dice);
  const size_t what = dice.below(5);
  if (what == 0 && place->is_object() && !place->empty()) {
    auto gone = place->begin();
    std::advance(gone, static_cast<ptrdiff_t>(dice.below(place->size())));
    place->erase(gone);
  } else if (what == 1 && place->is_array() && !place->empty()) {
    const json copy = (*place)[dice.below(place->size())];
    place->push_back(copy);
  } else if (what == 2) {
    const json copy = *place_in(root, dice);
    *place_in(root, dice) = copy;
  } else {
    *place = odd_value(dice);
  }
}

#ifdef HEADRACE_SANITIZED
constexpr size_t kMutants = 1500;
#else
constexpr size_t kMutants = 12000;
#endif

const std::vector<std::string> kSmallOnes = {"bpe-llama",      "bpe-added", "unigram-t5",
                                             "wordpiece-bert", "bytes-odd", "word-level"};

TEST(TokenizerMutants, TruncatedJson) {
  for (const std::string& name : {std::string("wordpiece-bert"), std::string("unigram-whole")}) {
    const std::string text = small(name).dump();
    size_t num_read = 0;
    for (size_t size = 0; size < text.size(); ++size) {
      check_outcome(read_text(text.substr(0, size)), num_read);
    }
    EXPECT_EQ(num_read, 0U);
    check_outcome(read_text(text), num_read);
    EXPECT_EQ(num_read, 1U);
  }
}

TEST(TokenizerMutants, StructuredJson) {
  std::vector<json> roots;
  for (const std::string& name : kSmallOnes) {
    roots.push_back(small(name));
    size_t num_read = 0;
    const auto made = read_text(roots.back().dump());
    ASSERT_TRUE(made.ok()) << name << ": " << made.error().to_string();
    check_outcome(made, num_read);
  }
  Dice dice(1);
  size_t num_read = 0;
  for (size_t i = 0; i < kMutants; ++i) {
    json root = roots[i % roots.size()];
    const size_t times = 1 + dice.below(3);
    for (size_t k = 0; k < times; ++k) mutate(root, dice);
    SCOPED_TRACE("mutant " + std::to_string(i));
    check_outcome(read_text(root.dump()), num_read);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(num_read, kMutants / 100);
  EXPECT_LT(num_read, kMutants);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_bytes(std::string& out, uint64_t number, std::string_view bytes) {
  put_varint(out, number << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

// A model of a dozen pieces with every part that is read.
std::string small_model() {
  std::string model;
  const auto piece = [&](std::string_view text, float score, uint64_t type) {
    std::string message;
    put_bytes(message, 1, text);
    message += '\x15';
    message.append(reinterpret_cast<const char*>(&score), 4);
    put_varint(message, 3 << 3);
    put_varint(message, type);
    put_bytes(model, 1, message);
  };
  piece("<unk>", 0, 2);
  piece("<s>", 0, 3);
  piece("</s>", 0, 3);
  piece("wheel", 0, 4);
  for (const char* text : {"T", "h", "e", "he", "\xE2\x96\x81", "t", "u", "1", "!"}) {
    piece(text, -1.5F, 1);
  }
  std::string trainer;
  for (const auto& [number, value] : {std::pair{3, 1}, {35, 0}, {40, 0}, {41, 1}, {42, 2}}) {
    put_varint(trainer, static_cast<uint64_t>(number) << 3);
    put_varint(trainer, static_cast<uint64_t>(value));
  }
  put_bytes(model, 2, trainer);
  std::string normalizer;
  std::string charsmap(4, '\0');
  charsmap[1] = 4;  // a trie of 1 024 bytes
  charsmap.append(1024, '\x01').append("abc\0", 4);
  put_bytes(normalizer, 2, charsmap);
  put_varint(normalizer, 3 << 3);
  put_varint(normalizer, 1);
  put_bytes(model, 3, normalizer);
  return model;
}

TEST(TokenizerMutants, TruncatedModel) {
  const std::string bytes = small_model();
  size_t num_read = 0;
  check_outcome(read_model_bytes(bytes), num_read);
  ASSERT_EQ(num_read, 1U);
  for (size_t size = 0; size < bytes.size(); ++size) {
    check_outcome(read_model_bytes(std::string_view(bytes).substr(0, size)), num_read);
  }
}

TEST(TokenizerMutants, StructuredModel) {
  const std::string bytes = small_model();
  Dice dice(2);
  size_t num_read = 0;
  for (size_t i = 0; i < kMutants; ++i) {
    std::string mutant = bytes;
    const size_t times = 1 + dice.below(3);
    for (size_t k = 0; k < times; ++k) {
      const size_t at = dice.below(mutant.size());
      constexpr unsigned char kOdd[] = {0, 0xFF, 0x80, 0x7F, 0x0A, 0x12, 0x1A, 0x28, 1, 2};
      switch (dice.below(4)) {
        case 0:
          mutant[at] = static_cast<char>(kOdd[dice.below(sizeof kOdd)]);
          break;
        case 1:
          mutant[at] = static_cast<char>(mutant[at] ^ (1 << dice.below(8)));
          break;
        case 2:
          mutant.erase(at, 1 + dice.below(6));
          break;
        default:
          mutant.insert(at, mutant.substr(dice.below(mutant.size()), dice.below(40)));
          break;
      }
      if (mutant.empty()) mutant = "\n";
    }
    SCOPED_TRACE("mutant " + std::to_string(i));
    check_outcome(read_model_bytes(mutant), num_read);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(num_read, kMutants / 100);
  EXPECT_LT(num_read, kMutants);
}

}  // namespace
}  // namespace headrace::text
