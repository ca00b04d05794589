// See sentencepiece.h. Field numbers: google/sentencepiece, src/sentencepiece_model.proto.
#include "text/hf/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/quote_name.h"
#include "text/hf/cut_at_marks.h"
#include "text/hf/decoders.h"
#include "text/hf/json_fields.h"
#include "text/hf/pipeline.h"
#include "text/hf/protobuf_reader.h"
#include "text/hf/read_model.h"
#include "text/hf/special_tokens.h"

namespace headrace::text {
namespace {

using nlohmann::json;

Error bad_model(std::string message, ErrorCode code = ErrorCode::corrupt_data) {
  return Error{code, std::move(message), "tokenizer.model", ""};
}

// Calls `read(field)` for every field of a message.
template <class Read>
Result<void> each_field(std::string_view message, std::string_view what, Read&& read) {
  ProtobufReader reader(message);
  for (;;) {
    auto field = reader.next();
    if (!field.ok()) {
      return bad_model(std::string(what) + ": " + field.error().message);
    }
    if (!*field) return {};
    HEADRACE_TRY(read(**field));
  }
}

Result<void> check_wire(const ProtobufField& field, uint32_t wanted, std::string_view what) {
  if (field.wire_type == wanted) return {};
  return bad_model(std::string(what) + ": expected field " + std::to_string(field.number) +
                   " of wire type " + std::to_string(wanted) + ", found " +
                   std::to_string(field.wire_type));
}

Result<void> read_piece(std::string_view message, SentencePieceModel& model) {
  Vocabulary& vocabulary = model.vocabulary;
  const std::string what = "piece " + std::to_string(vocabulary.kinds.size());
  std::string_view piece;
  float score = 0;
  uint64_t type = 1;
  const auto read = each_field(message, what, [&](const ProtobufField& field) -> Result<void> {
    if (field.number == 1) {
      HEADRACE_TRY(check_wire(field, 2, what));
      piece = field.bytes;
    } else if (field.number == 2) {
      HEADRACE_TRY(check_wire(field, 5, what));
      score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    } else if (field.number == 3) {
      HEADRACE_TRY(check_wire(field, 0, what));
      type = field.value;
    }
    return {};
  });
  if (!read.ok()) return read.error();
  if (piece.empty()) return bad_model(what + ": expected a text, found none");
  if (!std::isfinite(score)) return bad_model(what + ": the score is not a finite number");
  if (type < 1 || type > 6) {
    return bad_model(what + ": expected a type of 1 to 6, found " + std::to_string(type));
  }
  if (vocabulary.kinds.size() >= kMaxVocabularySize) {
    return bad_model("expected at most " + std::to_string(kMaxVocabularySize) + " pieces");
  }
  vocabulary.pieces.add(piece);
  vocabulary.scores.push_back(score);
  vocabulary.kinds.push_back(static_cast<TokenKind>(type));
  return {};
}

Result<void> read_trainer(std::string_view message, SentencePieceModel& model) {
  SpecialTokens& special = model.vocabulary.special;
  return each_field(message, "trainer_spec", [&](const ProtobufField& field) -> Result<void> {
    const auto id = [&]() { return static_cast<TokenId>(static_cast<int64_t>(field.value)); };
    switch (field.number) {
      case 3:
        if (field.value != 1 && field.value != 2) {
          return bad_model("trainer_spec.model_type: expected 1 (Unigram) or 2 (BPE), found " +
                               std::to_string(field.value),
                           ErrorCode::unsupported);
        }
        model.unigram = field.value == 1;
        return {};
      case 24:
        if (field.value == 0) return {};
        return bad_model("trainer_spec.treat_whitespace_as_suffix: expected false",
                         ErrorCode::unsupported);
      case 35:
        model.byte_fallback = field.value != 0;
        return {};
      case 40:
        special.unk = id();
        return {};
      case 41:
        special.bos = id();
        return {};
      case 42:
        special.eos = id();
        return {};
      case 43:
        special.pad = id();
        return {};
      default:
        return {};
    }
  });
}

Result<void> read_normalizer_spec(std::string_view message, SentencePieceModel& model) {
  return each_field(message, "normalizer_spec", [&](const ProtobufField& field) -> Result<void> {
    switch (field.number) {
      case 2: {
        HEADRACE_TRY(check_wire(field, 2, "normalizer_spec"));
        if (field.bytes.empty()) return {};
        auto charsmap = Charsmap::make(field.bytes);
        if (!charsmap.ok()) return bad_model("normalizer_spec: " + charsmap.error().message);
        model.rules.charsmap = std::move(*charsmap);
        return {};
      }
      case 3:
        model.rules.add_dummy_prefix = field.value != 0;
        return {};
      case 4:
        model.rules.remove_extra_whitespaces = field.value != 0;
        return {};
      case 5:
        if (field.value != 0) return {};
        return bad_model("normalizer_spec.escape_whitespaces: expected true",
                         ErrorCode::unsupported);
      default:
        return {};
    }
  });
}

// Of what SentencePiece's normaliser does this comes last, since it is for the text as a whole.
class DummyPrefixCutter final : public Cutter {
 public:
  void cut(std::string_view text, bool first, std::string& buffer, PieceSink sink) const override {
    if (!first) return sink(text, false);
    buffer.assign(kSpaceMark).append(text);
    sink(buffer, true);
  }
  std::string describe() const override { return "dummy prefix"; }
};

// added_tokens.json: ids by their text.
Result<void> append_added_tokens(const HfFiles& files, json& added) {
  HEADRACE_TRY(append_added_tokens_decoder(files, added));
  if (added.is_null()) added = json::array();
  if (files.added_tokens.empty()) return {};
  HEADRACE_ASSIGN(const json list, parse_object(files.added_tokens, "added_tokens.json"));
  for (const auto& [content, id] : list.items()) {
    const bool is_known = std::any_of(added.begin(), added.end(), [&](const json& token) {
      return member(token, "content") == content;
    });
    if (is_known) continue;
    added.push_back({{"content", content}, {"id", id}, {"special", false}, {"normalized", false}});
  }
  return {};
}

// Whether the tokenizer's class puts BOS before a text unless it is told otherwise, or EOS behind.
Result<void> default_template(const HfFiles& files, const SentencePieceModel& model,
                              TokenTemplate& single, TokenTemplate& pair) {
  json config = json::object();
  if (!files.tokenizer_config.empty()) {
    HEADRACE_ASSIGN(config, parse_object(files.tokenizer_config, "tokenizer_config.json"));
  }
  HEADRACE_ASSIGN(const std::string name, text_or(config, "tokenizer_class", "", "config"));
  const SpecialTokens& special = model.vocabulary.special;
  const bool is_t5 = name.find("T5") != name.npos;
  const TemplateItem bos{-1, {special.bos}, 0}, eos{-1, {special.eos}, 0};
  single = {{0, {}, 0}};
  pair = {{0, {}, 0}, {1, {}, 1}};
  if (special.bos >= 0 && (special.add_bos || (!model.unigram && !is_t5))) {
    single.insert(single.begin(), bos);
    pair.insert(pair.begin(), bos);
  }
  if (special.eos >= 0 && (special.add_eos || is_t5)) {
    single.push_back(eos);
    pair = {{0, {}, 0}, eos, {1, {}, 0}, eos};
  }
  return {};
}

}  // namespace

Result<SentencePieceModel> read_sentencepiece(std::string_view bytes) {
  if (bytes.size() > kMaxSentencePieceBytes) return bad_model("expected at most 128 MiB");
  SentencePieceModel model;
  SpecialTokens& special = model.vocabulary.special;
  special.unk = 0;
  special.bos = 1;
  special.eos = 2;
  const auto read = each_field(bytes, "the model", [&](const ProtobufField& field) -> Result<void> {
    if (field.number < 1 || field.number > 3) return {};
    HEADRACE_TRY(check_wire(field, 2, "the model"));
    if (field.number == 1) return read_piece(field.bytes, model);
    if (field.number == 2) return read_trainer(field.bytes, model);
    return read_normalizer_spec(field.bytes, model);
  });
  if (!read.ok()) return read.error();
  Vocabulary& vocabulary = model.vocabulary;
  if (vocabulary.size() == 0) return bad_model("expected pieces, found none");
  for (TokenId* const id : {&special.unk, &special.bos, &special.eos, &special.pad}) {
    if (!vocabulary.is_id(*id)) *id = -1;
  }
  if (special.unk >= 0 &&
      vocabulary.kinds[static_cast<size_t>(special.unk)] != TokenKind::unknown) {
    special.unk = -1;
  }
  return model;
}

Result<std::shared_ptr<const Tokenizer>> build_sentencepiece(SentencePieceModel model,
                                                             const HfFiles& files,
                                                             std::string_view place,
                                                             const TokenizerOptions& options) {
  Vocabulary& vocabulary = model.vocabulary;
  Pipeline pipeline;
  ModelSpec& spec = pipeline.model;
  spec.kind = model.unigram ? ModelKind::unigram : ModelKind::scored_bpe;
  spec.unknown = vocabulary.special.unk;
  spec.byte_fallback = model.byte_fallback;
  spec.fuse_unknown = true;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    spec.in_model.push_back(vocabulary.kinds[id] == TokenKind::normal);
    spec.scores.push_back(vocabulary.scores[id]);
  }
  if (std::none_of(spec.in_model.begin(), spec.in_model.end(), [](bool in) { return in; })) {
    return Error{ErrorCode::corrupt_data, "expected pieces of ordinary text, found none",
                 std::string(place), ""};
  }
  vocabulary.scores.clear();
  json added;
  HEADRACE_TRY(append_added_tokens(files, added));
  HEADRACE_TRY(default_template(files, model, pipeline.single, pipeline.pair));
  HEADRACE_TRY(add_tokens(added, vocabulary, spec));
  pad_vocabulary(vocabulary, options.num_rows);
  spec.pad(vocabulary.size());
  HEADRACE_TRY(read_special_tokens(files, vocabulary, pipeline.single, pipeline.pair));

  cut_at_marks(vocabulary, pipeline);
  const bool add_prefix = std::exchange(model.rules.add_dummy_prefix, false);
  const bool removes = model.rules.remove_extra_whitespaces;
  if (add_prefix) {
    pipeline.cutters.insert(pipeline.cutters.begin(), std::make_unique<DummyPrefixCutter>());
  }
  pipeline.normalizer.push_back(make_sentencepiece_normalizer(std::move(model.rules)));
  pipeline.decoder.push_back(make_replace_decoder(make_replace_text(std::string(kSpaceMark), " ")));
  pipeline.decoder.push_back(make_byte_fallback_decoder());
  pipeline.decoder.push_back(make_fuse_decoder());
  // Of what had no extra spaces none can be at the beginning.
  if (add_prefix) pipeline.decoder.push_back(make_strip_decoder(" ", removes ? 1 << 20 : 1, 0));
  return build_pipeline(std::move(vocabulary), std::move(pipeline), place);
}

}  // namespace headrace::text
