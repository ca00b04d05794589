// Weights that are quantised while they are loaded: the model is that of a file which holds them
// so.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "app/weight_needs.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/test_tensors.h"
#include "checkpoint/quantization.h"
#include "engine/session/session.h"
#include "model/model.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

struct QuantizedModel {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;

  QuantizedModel(const std::string& path, Isa isa, int num_threads, const Quantization* quantize) {
    checkpoint = std::move(open_checkpoint(path).value());
    backend = make_cpu_backend({.isa = isa, .num_threads = num_threads});
    LoadModelOptions options;
    options.quantize = quantize;
    model = std::move(load_model(*checkpoint, *backend, options).value());
  }

  std::vector<float> logits() const {
    const auto session = make_session(*model, {.max_tokens = 16, .chunk_tokens = 16});
    std::vector<float> out;
    const auto fed = session->feed(std::vector<TokenId>{3, 1, 4, 1, 5, 9, 2, 6}, LogitsFor::all,
                                   [&](int64_t, std::span<const float> row) {
                                     out.insert(out.end(), row.begin(), row.end());
                                   });
    EXPECT_TRUE(fed.ok());
    return out;
  }
};

class QuantizeAtLoad : public testing::Test {
 protected:
  ~QuantizeAtLoad() override {
    fs::remove(plain_path_);
    fs::remove(made_path_);
  }

  /// A model of llama's order of rows, whose matrices have 256, 288 and 48 columns.
  test::TinyModel tiny(int64_t feed_forward) const {
    return test::tiny_model({.embedding = 256,
                             .feed_forward = feed_forward,
                             .num_heads = 4,
                             .num_kv_heads = 2,
                             .head_dim = 64,
                             .rope_dims = 64,
                             .vocab = 70});
  }

  /// The same with tensors as `to` makes them, in the file.
  void write_quantised(const test::TinyModel& tiny, const Quantization& to) {
    test::TinyModel made = test::tiny_metadata(tiny.options);
    const auto plain = std::move(open_checkpoint(plain_path_).value());
    for (const CheckpointTensor& tensor : plain->tensors()) {
      const Format format = chosen_format(to, tensor);
      std::string bytes(bytes_in_format(tensor, format), '\0');
      auto* out = reinterpret_cast<std::byte*>(bytes.data());
      if (format == tensor.format) {
        std::copy(tensor.data.begin(), tensor.data.end(), out);
      } else {
        const auto row_bytes = *format_row_bytes(format, static_cast<uint64_t>(tensor.shape[1]));
        for (int64_t row = 0; row < tensor.shape[0]; ++row) {
          ASSERT_TRUE(
              encode_row(tensor, format, row, out + static_cast<uint64_t>(row) * row_bytes).ok());
        }
      }
      made.file.add_tensor(tensor.name, format_traits(format).ggml_type, tensor.shape, bytes);
    }
    made.file.write(made_path_);
  }

  const std::string plain_path_ = testing::TempDir() + "quantize_at_load_plain.gguf";
  const std::string made_path_ = testing::TempDir() + "quantize_at_load_made.gguf";
};

TEST_F(QuantizeAtLoad, IsAsAFileThatWasQuantised) {
  for (const int64_t feed_forward : {288, 48}) {
    const test::TinyModel model = tiny(feed_forward);
    model.file.write(plain_path_);
    for (const Quantization& to : all_quantizations()) {
      SCOPED_TRACE(to.name);
      ASSERT_NO_FATAL_FAILURE(write_quantised(model, to));
      for (const Isa isa : available_isas()) {
        const QuantizedModel made(made_path_, isa, 1, nullptr);
        const QuantizedModel loaded(plain_path_, isa, 2, &to);
        EXPECT_TRUE(backend_test::same_bits(loaded.logits(), made.logits())) << isa_name(isa);
        EXPECT_EQ(loaded.model->info().weight_bytes, made.model->info().weight_bytes);
      }
    }
  }
}

TEST_F(QuantizeAtLoad, ThePlanKnowsWhatWeightsBecome) {
  const test::TinyModel model = tiny(288);
  model.file.write(plain_path_);
  const auto plain = std::move(open_checkpoint(plain_path_).value());
  for (const Quantization& to : all_quantizations()) {
    ASSERT_NO_FATAL_FAILURE(write_quantised(model, to));
    const auto made = std::move(open_checkpoint(made_path_).value());
    MemoryNeeds expected;
    set_weight_needs(expected, *made, {});
    MemoryNeeds needs;
    set_weight_needs(needs, *plain, {.quantize = &to});
    EXPECT_EQ(needs.weight_bytes, expected.weight_bytes) << to.name;
  }
}

TEST_F(QuantizeAtLoad, AWeightThatIsNoNumberEndsLoading) {
  test::TinyModel model = test::tiny_metadata(tiny(288).options);
  for (auto [name, tensor] : tiny(288).tensors) {
    if (name == "blk.1.ffn_up.weight") {
      tensor.values[256 * 40 + 17] = std::numeric_limits<float>::infinity();
      tensor.values[256 * 200 + 3] = std::numeric_limits<float>::quiet_NaN();
    }
    model.add(name, tensor.shape, tensor.values);
  }
  model.file.write(plain_path_);
  const auto checkpoint = std::move(open_checkpoint(plain_path_).value());
  for (const int num_threads : {1, 3}) {
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = num_threads});
    LoadModelOptions options;
    EXPECT_TRUE(load_model(*checkpoint, *backend, options).ok());
    options.quantize = find_quantization("q4_k");
    const auto loaded = load_model(*checkpoint, *backend, options);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::corrupt_data);
    const std::string text = loaded.error().to_string();
    EXPECT_NE(text.find("'blk.1.ffn_up.weight'"), std::string::npos) << text;
    EXPECT_NE(text.find("row 40, column 17 is infinite"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace headrace
