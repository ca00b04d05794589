// See cut_at_marks.h.
#include "text/hf/cut_at_marks.h"

#include <algorithm>

#include "text/vocabulary.h"

namespace headrace::text {
namespace {

// Before every mark that has another character before it.
class MarkCutter final : public Cutter {
 public:
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    for (size_t begin = 0; begin < text.size();) {
      size_t from = begin;
      while (text.substr(from).starts_with(kSpaceMark)) from += kSpaceMark.size();
      const size_t end = std::min(text.find(kSpaceMark, from), text.size());
      sink(text.substr(begin, end - begin), first && begin == 0);
      begin = end;
    }
  }
  std::string describe() const override { return "words"; }
};

bool has_mark_inside(std::string_view piece) {
  size_t at = 0;
  while (piece.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
  return piece.find(kSpaceMark, at) != piece.npos;
}

}  // namespace

void cut_at_marks(const Vocabulary& vocabulary, Pipeline& pipeline) {
  const ModelSpec& spec = pipeline.model;
  if (spec.byte_fallback) {
    bool has_all = true;
    for (int byte = 0; byte < 256; ++byte) {
      constexpr const char* kDigits = "0123456789ABCDEF";
      const char piece[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
      has_all = has_all && vocabulary.index.find(vocabulary.pieces, {piece, sizeof piece}) >= 0;
    }
    pipeline.keeps_bytes = pipeline.keeps_bytes || has_all;
  }
  const bool joins = spec.kind != ModelKind::wordpiece && spec.kind != ModelKind::word_level;
  if (!joins || !pipeline.cutters.empty() || spec.ignore_merges || !spec.prefix.empty() ||
      !spec.suffix.empty()) {
    return;
  }
  // A mark that is unknown would be one with unknown neighbours.
  const TokenId mark = vocabulary.index.find(vocabulary.pieces, kSpaceMark);
  if (mark < 0 || !spec.in_model[static_cast<size_t>(mark)]) return;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (spec.in_model[id] && has_mark_inside(vocabulary.pieces[id])) return;
  }
  pipeline.cutters.push_back(std::make_unique<MarkCutter>());
}

}  // namespace headrace::text
