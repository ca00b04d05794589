// See select_files.h.
#include "store/select_files.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/nearest_word.h"
#include "store/file_names.h"
#include "store/gguf_names.h"

namespace headrace {
namespace {

constexpr size_t kMaxListed = 24;

constexpr std::array<std::string_view, 18> kDirectoryFiles = {
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer.model",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json",
    "model.safetensors.index.json",
    // How sentence embeddings are made of the model's output.
    "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    "1_Pooling/config.json", "2_Normalize/config.json"};

bool is_weights(std::string_view path) {
  // consolidated.* are the same weights once more.
  return path.ends_with(".safetensors") && path.find('/') == std::string_view::npos &&
         !path.starts_with("consolidated");
}

bool is_directory_file(std::string_view path) {
  if (std::find(kDirectoryFiles.begin(), kDirectoryFiles.end(), path) != kDirectoryFiles.end()) {
    return true;
  }
  constexpr std::string_view kTemplates = "additional_chat_templates/";
  if (path.starts_with(kTemplates) && path.ends_with(".jinja")) {
    return path.find('/', kTemplates.size()) == std::string_view::npos;
  }
  return is_weights(path);
}

std::string amount(uint64_t bytes) {
  const auto tenths = [](uint64_t value, uint64_t unit) {
    const uint64_t scaled = (value + unit / 20) / (unit / 10);
    return std::to_string(scaled / 10) + "." + std::to_string(scaled % 10);
  };
  if (bytes >= 1'000'000'000) return tenths(bytes, 1'000'000'000) + " GB";
  if (bytes >= 1'000'000) return tenths(bytes, 1'000'000) + " MB";
  return tenths(bytes, 1'000) + " kB";
}

/// "Q4_K_M x-q4_k_m.gguf (1.2 GB), ...".
std::string listed(const std::vector<const GgufModel*>& models) {
  std::string text;
  for (size_t i = 0; i < models.size() && i < kMaxListed; ++i) {
    text += (i == 0 ? "" : ", ") + models[i]->path + " (" + amount(models[i]->size_bytes) + ")";
  }
  if (models.size() > kMaxListed) {
    text += ", and " + std::to_string(models.size() - kMaxListed) + " more";
  }
  return text;
}

std::vector<const GgufModel*> all_of(const std::vector<GgufModel>& models) {
  std::vector<const GgufModel*> pointers;
  for (const GgufModel& model : models) pointers.push_back(&model);
  return pointers;
}

/// Whether the stem of the path, or a folder of it, ends in the selector behind a `-`, `.` or at
/// its begin; both in lower case.
bool ends_in(const GgufModel& model, const std::string& selector) {
  const auto split = split_name_of(model.path);
  std::string stem = lower_case(split ? split->base : model.path);
  if (!split && stem.ends_with(".gguf")) stem.resize(stem.size() - 5);
  for (size_t begin = 0; begin <= stem.size();) {
    const size_t end = std::min(stem.find('/', begin), stem.size());
    const std::string part = stem.substr(begin, end - begin);
    const size_t rest = part.size() - std::min(part.size(), selector.size());
    if (part.ends_with(selector) && (rest == 0 || part[rest - 1] == '-' || part[rest - 1] == '.')) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

std::vector<const GgufModel*> fitting(const std::vector<GgufModel>& models,
                                      const std::string& selector) {
  const std::string wanted = lower_case(selector);
  std::vector<const GgufModel*> found;
  for (const GgufModel& model : models) {
    if (lower_case(model.quantization) == wanted) found.push_back(&model);
  }
  if (!found.empty()) return found;
  for (const GgufModel& model : models) {
    if (ends_in(model, wanted)) found.push_back(&model);
  }
  return found;
}

/// Short where the quantisation tells it from all others.
std::string label_of(const std::vector<GgufModel>& models, const GgufModel& model) {
  if (model.quantization.empty()) return model.path;
  const bool is_alone = fitting(models, model.quantization).size() == 1;
  return is_alone ? model.quantization : model.path;
}

Result<Selection> take(const std::vector<GgufModel>& models, const GgufModel& model) {
  if (!model.is_whole) {
    return Error{ErrorCode::not_found, "parts of the split file are missing", model.path, ""};
  }
  return Selection{ModelFormat::gguf, model.quantization, label_of(models, model), model.files};
}

Error no_file(const std::vector<RepoFile>& files, const std::string& selector) {
  Error error{ErrorCode::not_found, "there is no such file", selector, ""};
  std::vector<std::pair<size_t, std::string>> near;
  for (const RepoFile& file : files) {
    if (file.path.size() > 256 || selector.size() > 256) continue;
    near.emplace_back(edit_distance(lower_case(selector), lower_case(file.path)), file.path);
    if (near.size() > 2000) break;
  }
  std::stable_sort(near.begin(), near.end());
  for (size_t i = 0; i < near.size() && i < 5; ++i) {
    error.hint += (i == 0 ? "the nearest: " : ", ") + near[i].second;
  }
  if (near.empty()) error.hint = "there are no files at all";
  return error;
}

Result<Selection> select_named(const std::vector<RepoFile>& files,
                               const std::vector<GgufModel>& models, const std::string& selector) {
  for (const GgufModel& model : models) {
    const bool has = std::any_of(model.files.begin(), model.files.end(),
                                 [&](size_t index) { return files[index].path == selector; });
    if (has) return take(models, model);
  }
  for (const RepoFile& file : files) {
    if (file.path != selector) continue;
    return Error{ErrorCode::unsupported, "this file is no model in GGUF format", selector,
                 "leave the file out for a repository of safetensors"};
  }
  const auto found = fitting(models, selector);
  if (found.size() == 1) return take(models, *found.front());
  if (found.size() > 1) {
    return Error{ErrorCode::invalid_argument, "several files fit", selector,
                 "name one of: " + listed(found)};
  }
  const bool is_file = selector.find('/') != std::string::npos ||
                       selector.find('.') != std::string::npos || models.empty();
  if (is_file) return no_file(files, selector);
  return Error{ErrorCode::not_found, "there is no such quantisation", selector,
               "there are: " + listed(all_of(models))};
}

Error nothing_usable(const std::vector<RepoFile>& files) {
  std::string names;
  for (size_t i = 0; i < files.size() && i < 8; ++i) {
    names += (i == 0 ? "" : ", ") + files[i].path;
  }
  if (files.size() > 8) names += ", ...";
  return {ErrorCode::unsupported,
          "there is no model in GGUF format, and none in safetensors with a config.json", "",
          files.empty() ? "there are no files at all" : "there are: " + names};
}

}  // namespace

std::string_view model_format_name(ModelFormat format) {
  return format == ModelFormat::gguf ? "gguf" : "safetensors";
}

std::vector<GgufModel> gguf_models_of(const std::vector<RepoFile>& files) {
  std::map<std::string, GgufModel> singles;
  std::map<std::pair<std::string, int>, std::map<int, size_t>> splits;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    if (!path.ends_with(".gguf") || is_companion_gguf(path)) continue;
    if (const auto split = split_name_of(path)) {
      splits[{split->base, split->total}][split->part] = i;
    } else {
      singles[path] = GgufModel{path, quantization_of(path), {i}, files[i].size_bytes, true};
    }
  }
  for (const auto& [key, parts] : splits) {
    GgufModel model;
    model.path = files[parts.begin()->second].path;
    model.quantization = quantization_of(key.first);
    for (const auto& [part, index] : parts) {
      model.files.push_back(index);
      model.size_bytes += files[index].size_bytes;
    }
    model.is_whole = parts.size() == static_cast<size_t>(key.second);
    singles[model.path] = std::move(model);
  }
  std::vector<GgufModel> models;
  for (auto& [path, model] : singles) models.push_back(std::move(model));
  return models;
}

std::vector<size_t> safetensors_files_of(const std::vector<RepoFile>& files) {
  std::map<std::pair<std::string, int>, int> num_parts;  // of "model-00001-of-00002.safetensors"
  std::vector<size_t> chosen;
  bool has_config = false;
  bool has_weights = false;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!is_directory_file(files[i].path)) continue;
    chosen.push_back(i);
    has_config |= files[i].path == "config.json";
    if (!is_weights(files[i].path)) continue;
    has_weights = true;
    if (const auto split = split_name_of(files[i].path)) ++num_parts[{split->base, split->total}];
  }
  const bool is_whole = std::all_of(num_parts.begin(), num_parts.end(), [](const auto& each) {
    return each.second == each.first.second;
  });
  if (!has_config || !has_weights || !is_whole) chosen.clear();
  return chosen;
}

Result<Selection> select_files(const std::vector<RepoFile>& files, const std::string& selector) {
  const std::vector<GgufModel> models = gguf_models_of(files);
  if (!selector.empty()) return select_named(files, models, selector);
  for (const char* preferred : {"Q4_K_M", "Q8_0"}) {
    const auto found = fitting(models, preferred);
    if (found.size() == 1) return take(models, *found.front());
    if (found.size() > 1) {
      return Error{ErrorCode::invalid_argument,
                   std::string("several files are of ") + preferred + ", and none is named", "",
                   "name one behind a colon: " + listed(found)};
    }
  }
  if (models.size() == 1) return take(models, models.front());
  if (!models.empty()) {
    return Error{ErrorCode::invalid_argument, "there are several models, and none is named", "",
                 "name a file or quantisation behind a colon: " + listed(all_of(models))};
  }
  std::vector<size_t> chosen = safetensors_files_of(files);
  if (chosen.empty()) return nothing_usable(files);
  return Selection{ModelFormat::safetensors, "", "", std::move(chosen)};
}

}  // namespace headrace
