// See bench_setting.h.
#include "cli/bench/bench_setting.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/cpu_features.h"
#include "base/os/system_limits.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/terminal_text.h"

namespace headrace::cli {

std::vector<std::string> parts_once(const std::string& list) {
  return given_or<std::string>(split_list(list), "");
}

Option numbers_option(std::string names, std::string help, std::vector<int64_t>* target,
                      std::string default_text, double least, double most) {
  Option option =
      make_option(std::move(names), "N[,N...]", std::move(help), target, std::move(default_text));
  option.min_value = least;
  option.max_value = most;
  return option;
}

std::vector<Option> bench_model_options(BenchModelArgs& args) {
  std::vector<Option> options;
  ModelArgs unused;
  options.push_back(model_option(unused));
  options.back().target = &args.models;
  options.back().help += "; may be given several times";
  options.push_back(numbers_option("-t,--threads", "Threads", &args.threads,
                                   "the processors this process may use", 1, 1024));
  options.push_back(pin_option(&args.pin));
  options.push_back(full_head_option(&args.full_head));
  options.push_back(no_pack_option(&args.no_pack));
  options.push_back(quantize_option(&args.quantize));
  options.push_back(kv_type_option(&args.kv_types, true));
  options.push_back(isa_option(&args.isas, true));
  options.push_back(numbers_option("-ub,--ubatch-size", "Prompt tokens computed in one step",
                                   &args.chunks, std::to_string(OpenOptions{}.chunk_tokens), 1,
                                   8192));
  for (Option& option : options) option.group = "Model";
  return options;
}

Result<std::vector<BenchModel>> bench_models(const BenchModelArgs& args, int64_t context,
                                             const CheckNeeds& check_needs) {
  std::vector<BenchModel> models;
  for (const std::string& model : given_or<std::string>(args.models, "")) {
    ModelArgs model_args;
    model_args.model = model;
    HEADRACE_ASSIGN(const std::string path, find_model(model_args, true));
    for (const std::string& isa : parts_once(args.isas)) {
      for (const std::string& kv_type : parts_once(args.kv_types)) {
        for (const int64_t threads : given_or<int64_t>(args.threads, 0)) {
          for (const int64_t chunk : given_or<int64_t>(args.chunks, OpenOptions{}.chunk_tokens)) {
            BenchModel made;
            made.path = path;
            made.options.isa = isa;
            made.options.kv_type = kv_type;
            made.options.num_threads = static_cast<int>(threads);
            made.options.pin = args.pin;
            made.options.full_head = args.full_head;
            made.options.pack = !args.no_pack;
            made.options.quantize = args.quantize;
            made.options.chunk_tokens = chunk;
            made.options.context = context;
            made.options.check_needs = check_needs;
            models.push_back(std::move(made));
          }
        }
      }
    }
  }
  return models;
}

std::shared_ptr<BenchSetting> describe(const OpenedModel& model) {
  const ModelInfo& info = model.model->info();
  auto setting = std::make_shared<BenchSetting>();
  setting->model = info.name;
  setting->file = model.path;
  setting->weight_bytes = info.weight_bytes;
  setting->quantized = model.options.quantize;
  setting->is_packed = model.options.pack;
  setting->num_parameters = info.num_parameters;
  setting->num_active_parameters = info.num_active_parameters;
  setting->cpu = cpu_features().model_name;
  setting->isa = isa_name(model.isa);
  setting->kernels = model.backend->description();
  setting->num_threads = model.backend->num_threads();
  setting->num_processors = usable_processors();
  setting->kv_type = kv_type_name(model.kv_type);
  setting->chunk_tokens = model.options.chunk_tokens;
  return setting;
}

namespace {

std::string parameters_text(const BenchSetting& setting) {
  const auto millions = [](int64_t num) {
    return fmt::format("{:.0f} M", 1e-6 * static_cast<double>(num));
  };
  if (setting.num_active_parameters == setting.num_parameters) {
    return millions(setting.num_parameters);
  }
  return millions(setting.num_active_parameters) + " of " + millions(setting.num_parameters);
}

}  // namespace

std::string setting_text(const BenchSetting& setting) {
  return fmt::format("{}, {} parameters, {} of weights{}; {}, {}, {} {} of {}, KV {}, steps of {}",
                     setting.model, parameters_text(setting), size_text(setting.weight_bytes),
                     setting.is_packed ? "" : " in the file", setting.cpu, setting.kernels,
                     setting.num_threads, setting.num_threads == 1 ? "thread" : "threads",
                     setting.num_processors, setting.kv_type, setting.chunk_tokens);
}

void add_setting(nlohmann::ordered_json& row, const BenchSetting& setting) {
  row["cpu"] = setting.cpu;
  row["isa"] = setting.isa;
  row["threads"] = setting.num_threads;
  row["kv_type"] = setting.kv_type;
  row["model"] = setting.model;
}

void add_setting_details(nlohmann::ordered_json& row, const BenchSetting& setting) {
  using Json = nlohmann::ordered_json;
  row["kernels"] = setting.kernels;
  row["processors"] = setting.num_processors;
  row["chunk_tokens"] = setting.chunk_tokens;
  row["model_file"] = setting.file;
  row["model_bytes"] = setting.weight_bytes;
  row["packed"] = setting.is_packed;
  row["quantized"] = setting.quantized.empty() ? Json() : Json(setting.quantized);
  row["model_parameters"] = setting.num_parameters;
  row["model_active_parameters"] = setting.num_active_parameters;
}

std::vector<SettingColumn> setting_columns(
    const std::vector<std::shared_ptr<const BenchSetting>>& settings) {
  const std::vector<SettingColumn> all = {
      {"model", false, [](const BenchSetting& s) { return printable(s.model, 40); }},
      {"isa", false, [](const BenchSetting& s) { return s.isa; }},
      {"threads", true, [](const BenchSetting& s) { return std::to_string(s.num_threads); }},
      {"KV", false, [](const BenchSetting& s) { return s.kv_type; }},
      {"steps of", true, [](const BenchSetting& s) { return std::to_string(s.chunk_tokens); }},
  };
  std::vector<SettingColumn> out;
  for (const SettingColumn& column : all) {
    std::set<std::string> values;
    for (const auto& setting : settings) values.insert(column.cell(*setting));
    if (values.size() > 1) out.push_back(column);
  }
  return out;
}

}  // namespace headrace::cli
