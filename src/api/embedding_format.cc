// See embedding_format.h.
#include "api/embedding_format.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "api/embedding_vector.h"
#include "api/json_writer.h"
#include "api/response_json.h"
#include "base/check.h"

namespace headrace::api {
namespace {

/// Of answers that are told whole: the parsers refuse "stream".
class WholeFormat : public ReplyFormat {
 public:
  WholeFormat(ResponseHead head, std::shared_ptr<const PreparedRequest> request,
              std::shared_ptr<const ServedModel> model)
      : head_(std::move(head)), request_(std::move(request)), model_(std::move(model)) {}

  void more(const Answer& /*answer*/, std::string& /*out*/) override {}
  void end(const Answer& answer, std::string& out) override { out += whole(answer); }
  void failed(const ApiError& error, std::string& out) override { out += error_json(error); }

 protected:
  const PreparedRequest& request() const { return *request_; }

  /// The fields after the list, and the end.
  std::string rest(const Answer& answer) const {
    const Usage usage = answer.usage();
    const std::string& other = answer.answered_by();
    const Json fields = {
        {"model", other.empty() ? model_->name : other},
        {"id", head_.id},
        {"created", head_.created_unix_seconds},
        {"usage", {{"prompt_tokens", usage.prompt_tokens}, {"total_tokens", usage.prompt_tokens}}},
        {"warnings", request_->warnings}};
    return "," + dumped(fields).substr(1);
  }

 private:
  const ResponseHead head_;
  const std::shared_ptr<const PreparedRequest> request_;
  const std::shared_ptr<const ServedModel> model_;
};

class EmbeddingFormat final : public WholeFormat {
 public:
  using WholeFormat::WholeFormat;

  std::string whole(const Answer& answer) override {
    HEADRACE_CHECK(!answer.has_failed());
    std::string out = R"({"object":"list","data":[)";
    for (size_t i = 0; i < answer.choices().size(); ++i) {
      if (i > 0) out += ',';
      out += R"({"object":"embedding","index":)" + std::to_string(i) + R"(,"embedding":)";
      const std::vector<float>& vector = answer.choices()[i].embedding;
      if (request().embedding->as_base64) {
        append_base64(out, vector);
      } else {
        append_numbers(out, vector);
      }
      out += '}';
    }
    return out + ']' + rest(answer);
  }
};

class RankingFormat final : public WholeFormat {
 public:
  using WholeFormat::WholeFormat;

  std::string whole(const Answer& answer) override {
    HEADRACE_CHECK(!answer.has_failed());
    const RankingOptions& options = *request().ranking;
    const auto score_of = [&](size_t i) { return answer.choices()[i].embedding.front(); };
    std::vector<size_t> order(answer.choices().size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return score_of(a) > score_of(b); });
    if (options.most_results > 0 && static_cast<size_t>(options.most_results) < order.size()) {
      order.resize(static_cast<size_t>(options.most_results));
    }
    std::string out = R"({"object":"list","results":[)";
    for (const size_t i : order) {
      if (out.back() != '[') out += ',';
      const float raw = score_of(i);
      const float score = options.tells_raw_scores ? raw : 1 / (1 + std::exp(-raw));
      out += R"({"index":)" + std::to_string(i) + R"(,"relevance_score":)" +
             Json(short_number(score)).dump();
      if (!options.documents.empty()) {
        out += R"(,"document":{"text":)";
        append_json_string(out, options.documents[i]);
        out += '}';
      }
      out += '}';
    }
    return out + ']' + rest(answer);
  }
};

}  // namespace

std::unique_ptr<ReplyFormat> make_embedding_format(const ResponseHead& head,
                                                   std::shared_ptr<const PreparedRequest> request,
                                                   std::shared_ptr<const ServedModel> model) {
  return std::make_unique<EmbeddingFormat>(head, std::move(request), std::move(model));
}

std::unique_ptr<ReplyFormat> make_ranking_format(const ResponseHead& head,
                                                 std::shared_ptr<const PreparedRequest> request,
                                                 std::shared_ptr<const ServedModel> model) {
  return std::make_unique<RankingFormat>(head, std::move(request), std::move(model));
}

}  // namespace headrace::api
