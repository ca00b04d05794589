// See run_request.h.
#include "api/run_request.h"

#include <chrono>
#include <utility>
#include <vector>

namespace headrace::api {
namespace {

constexpr std::chrono::milliseconds kLookAfter{20};

struct OpenStream {
  size_t prompt;
  Stream stream;
};

/// Takes what there is without waiting; whether the stream has ended.
bool take_ready(OpenStream& open, Answer& answer) {
  while (open.stream.wait_for(std::chrono::milliseconds(0))) {
    const auto event = open.stream.next();
    if (!event) return true;
    if (const auto choice = answer.take(open.prompt, *event)) open.stream.cancel(*choice);
  }
  return false;
}

}  // namespace

Result<Answer> run_request(Engine& engine, const std::shared_ptr<const Tokenizer>& tokenizer,
                           const PreparedRequest& request,
                           const std::function<bool()>& is_given_up) {
  Answer answer(request, tokenizer);
  // Streams that are dropped, on an error too, cancel their requests.
  std::vector<OpenStream> streams;
  for (size_t i = 0; i < request.requests.size(); ++i) {
    auto stream = engine.submit(request.requests[i]);
    if (!stream.ok()) return named_for_request(std::move(stream).error(), request);
    streams.push_back({i, std::move(stream).value()});
  }
  while (!streams.empty()) {
    for (size_t i = 0; i < streams.size();) {
      if (!take_ready(streams[i], answer)) {
        ++i;
        continue;
      }
      std::swap(streams[i], streams.back());
      streams.pop_back();
    }
    if (answer.has_failed()) return named_for_request(answer.error(), request);
    if (is_given_up()) return Error{ErrorCode::cancelled, "interrupted", "", ""};
    if (!streams.empty()) streams.front().stream.wait_for(kLookAfter);
  }
  return answer;
}

}  // namespace headrace::api
