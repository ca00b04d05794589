// See sequence.h.
#include "engine/scheduler/sequence.h"

#include <utility>

namespace headrace {

Sequence::Sequence(std::shared_ptr<Stream::Impl> stream_in,
                   std::shared_ptr<const Request> request_in,
                   const std::vector<TokenId>& end_tokens_in, uint64_t seed, int32_t choice_in)
    : stream(std::move(stream_in)),
      request(std::move(request_in)),
      choice(choice_in),
      end_tokens(end_tokens_in),
      chain(*request, end_tokens, seed, static_cast<uint64_t>(choice_in)),
      tokens(request->prompt) {}

Sequence::~Sequence() {
  if (!has_ended && stream != nullptr) stream->break_off();
}

}  // namespace headrace
