// What chat completions and completions have in common: the frame around the choices, and a stream
// of chunks that follows an answer. Must not know what one choice looks like.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

class OpenAiFormat : public ReplyFormat {
 public:
  OpenAiFormat(ResponseHead head, std::shared_ptr<const PreparedRequest> request,
               std::shared_ptr<const ServedModel> model, std::string_view whole_name,
               std::string_view chunk_name);

  std::string whole(const Answer& answer) override;
  void more(const Answer& answer, std::string& out) override;
  void end(const Answer& answer, std::string& out) override;
  void failed(const ApiError& error, std::string& out) override;

 protected:
  /// What a stream has told of one choice.
  struct Told {
    size_t text_bytes = 0;
    size_t num_tokens = 0;
    bool has_begun = false;
    bool has_ended = false;
  };

  /// One whole choice.
  virtual Json choice(const Answer& answer, size_t i) = 0;
  /// What choice `i` has more than was told, as JSON text.
  virtual std::string delta(const Answer& answer, size_t i, const Told& told) = 0;
  /// Its end, without what all protocols say of an end.
  virtual Json last_delta(const Answer& answer, size_t i) = 0;
  /// Whether something is told of a choice that has no text.
  virtual bool tells_empty() const { return false; }
  /// Further fields of the whole answer, or of the last chunk with a choice.
  virtual void add_rest(const Answer& /*answer*/, Json& /*to*/) {}

  const PreparedRequest& request() const { return *request_; }
  const ServedModel& model() const { return *model_; }
  void append_chunk(std::string_view choice, std::string& out);

 private:
  std::string frame(const Answer* answer, std::string_view object) const;
  void tell_choice(const Answer& answer, size_t i, std::string& out);
  void tell_end(const Answer& answer, size_t i, std::string& out);
  void tell_usage(const Answer& answer, std::string& out);
  Json rest(const Answer& answer);

  const ResponseHead head_;
  const std::shared_ptr<const PreparedRequest> request_;
  const std::shared_ptr<const ServedModel> model_;
  const std::string_view whole_name_;
  const std::string_view chunk_name_;
  const std::string chunk_begin_;  ///< up to the choices
  std::vector<Told> told_;
  size_t num_ended_ = 0;
};

}  // namespace headrace::api
