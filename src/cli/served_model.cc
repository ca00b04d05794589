// See served_model.h.
#include "cli/served_model.h"

#include <memory>
#include <utility>

#include "app/system_fingerprint.h"
#include "cli/version.h"
#include "text/longest_token.h"

namespace headrace::cli {

api::ServedModel served_model(const OpenedModel& opened, SamplingParams sampling, StopParams stop) {
  api::ServedModel served;
  served.name = opened.model->info().name;
  served.fingerprint = system_fingerprint(opened, kVersion);
  served.tokenizer = opened.tokenizer;
  served.breakers = std::make_shared<const BreakerFinder>(opened.tokenizer);
  served.longest_token_bytes = longest_token_bytes(*opened.tokenizer);
  served.chat_template = opened.chat_template ? &*opened.chat_template : nullptr;
  const ModelInfo& info = opened.model->info();
  served.vocab_size = info.vocab_size;
  served.is_encoder = info.is_encoder;
  served.normalizes = info.normalizes;
  served.embedding_length = info.embedding_length;
  served.num_classes = info.num_classes;
  for (size_t i = 0; i < info.adapters.size(); ++i) {
    const AdapterInfo& adapter = info.adapters[i];
    served.adapters.push_back(
        {adapter.name, adapter.path, adapter.digest, opened.adapters[i].strength});
  }
  served.default_adapters = opened.adapters;
  served.sampling = std::move(sampling);
  served.stop = std::move(stop);
  return served;
}

}  // namespace headrace::cli
