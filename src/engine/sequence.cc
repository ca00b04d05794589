// See sequence.h.
#include "engine/sequence.h"

#include <utility>

namespace headrace {

Sequence::Sequence(uint64_t id_in, Request request_in, std::vector<TokenId> end_tokens_in,
                   uint64_t seed)
    : id(id_in),
      request(std::move(request_in)),
      end_tokens(std::move(end_tokens_in)),
      chain(request, end_tokens, seed, 0),
      tokens(request.prompt) {}

Sequence::~Sequence() {
  if (!has_ended && stream != nullptr) stream->break_off();
}

}  // namespace headrace
