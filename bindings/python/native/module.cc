// headrace._native: what the Python package is written with. Every wait lets other Python threads
// run, and looks at signals, so that Ctrl-C is seen. See headrace/_native.pyi for types.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <span>

#include "app/sampling_defaults.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/os/system_limits.h"
#include "bindings/python/native/conversation.h"
#include "bindings/python/native/convert.h"
#include "bindings/python/native/local_model.h"
#include "text/breaker_tokens.h"

namespace headrace::python {
namespace {

namespace py = pybind11;
using std::chrono::milliseconds;

/// How soon Ctrl-C is seen.
constexpr milliseconds kLookAfter{50};

/// Throws what a signal's handler raised.
void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// Calls attempt(time) until it says true, without the GIL while it waits. At first with it: what
/// is there already is taken also while the interpreter ends.
template <class Attempt>
void wait_until(Attempt attempt) {
  bool done = attempt(milliseconds(0));
  while (!done) {
    {
      const py::gil_scoped_release others_run;
      done = attempt(kLookAfter);
    }
    check_signals();
  }
}

/// Calls work() without the GIL.
template <class Work>
auto without_gil(Work work) {
  const py::gil_scoped_release others_run;
  return work();
}

/// What Python is told while a model is fetched.
struct FetchCalls {
  py::object
      announce;  ///< (name, description, licence, note, bytes), where something is downloaded
  py::object progress;  ///< (stage, done_bytes, total_bytes)
};

/// Gets a model into the store. Either call may raise, as signals may: then the pull ends, and
/// `raised` has it. Called without the GIL.
Result<std::string> pull(const ModelStore& store, const std::string& name, const FetchCalls& calls,
                         std::exception_ptr& raised) {
  const auto ask = [&](auto call) {
    const py::gil_scoped_acquire ours;
    if (raised) return false;
    try {
      call();
      check_signals();
    } catch (py::error_already_set&) {
      raised = std::current_exception();
    }
    return !raised;
  };
  PullHooks hooks;
  hooks.announce = [&](const PullPlan& plan) {
    ask([&] {
      calls.announce(plan.name, plan.description, plan.license, plan.license_note,
                     plan.download_bytes);
    });
  };
  hooks.progress = [&](const PullProgress& now) {
    ask([&] { calls.progress(now.stage, now.done_bytes, now.total_bytes); });
  };
  hooks.keep_going = [&] { return ask([] {}); };
  HEADRACE_ASSIGN(PulledModel pulled, store.fetch(name, hooks));
  return std::move(pulled.path);
}

/// Calls get(pull) without the GIL, and rethrows what was raised in Python meanwhile.
template <class Get>
std::string with_pull(const FetchCalls& calls, Get get) {
  std::exception_ptr raised;
  const FetchModel fetch = [&](const ModelStore& store, const std::string& name) {
    return pull(store, name, calls, raised);
  };
  Result<std::string> path = without_gil([&] { return get(fetch); });
  if (raised) std::rethrow_exception(raised);
  return value_or_raise(std::move(path));
}

std::string resolve(const std::string& reference, const py::object& announce,
                    const py::object& progress) {
  return with_pull({announce, progress},
                   [&](const FetchModel& fetch) { return resolve_or_fetch(reference, fetch); });
}

std::string pull_by_name(const std::string& name, const py::object& announce,
                         const py::object& progress) {
  return with_pull({announce, progress}, [&](const FetchModel& fetch) -> Result<std::string> {
    HEADRACE_ASSIGN(const ModelStore store, ModelStore::open());
    return fetch(store, name);
  });
}

/// A request for Python: whoever drops it cancels it.
class PyRun {
 public:
  PyRun(std::shared_ptr<LocalModel> model, std::shared_ptr<Run> run,
        std::shared_ptr<const Tokenizer> tokenizer)
      : model_(std::move(model)), run_(std::move(run)), tokenizer_(std::move(tokenizer)) {}
  ~PyRun() { model_->drop(run_); }
  PyRun(const PyRun&) = delete;
  PyRun& operator=(const PyRun&) = delete;

  void wait() {
    check_process();
    const auto use = model_->use_for_waiting();
    wait_until([&](milliseconds time) { return model_->wait_for_end(*run_, time); });
  }
  py::list next_pieces() {
    check_process();
    const auto use = model_->use_for_waiting();
    wait_until([&](milliseconds time) { return run_->wait_for_pieces(time); });
    return pieces_of(run_->take_pieces(), *tokenizer_);
  }
  void cancel() { run_->cancel(); }
  py::dict state() const {
    check_process();
    return state_of(run_->state(), *tokenizer_);
  }

 private:
  /// In the child of a fork nothing would ever come, and locks may be taken for ever.
  void check_process() const {
    if (model_->is_abandoned()) value_or_raise(model_->use());
  }

  std::shared_ptr<LocalModel> model_;
  std::shared_ptr<Run> run_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

class PyModel {
 public:
  static std::unique_ptr<PyModel> open(const std::string& path, const py::dict& options) {
    const OpenOptions open_options = open_options_of(options);
    const EngineOptions engine_options = engine_options_of(options);
    auto out = std::make_unique<PyModel>();
    auto opened = without_gil([&] { return LocalModel::open(path, open_options, engine_options); });
    out->model_ = value_or_raise(std::move(opened));
    out->tokenizer_ = out->model_->opened().tokenizer;
    out->breakers_ = std::make_shared<const BreakerFinder>(out->tokenizer_);
    return out;
  }

  py::dict info() {
    const auto use = value_or_raise(model_->use());
    py::dict out = info_of(model_->opened());
    out["context"] = model_->engine().max_context();
    return out;
  }
  std::vector<std::string> warnings() {
    const auto use = value_or_raise(model_->use());
    return model_->opened().warnings;
  }

  std::vector<TokenId> tokenize(const std::string& text, bool add_special, bool parse_special) {
    const auto use = value_or_raise(model_->use());
    return value_or_raise(without_gil([&] {
      return tokenizer_->encode(text, EncodeOptions{add_special, parse_special});
    }));
  }
  py::bytes detokenize(const std::vector<TokenId>& ids, bool skip_special) {
    const auto use = value_or_raise(model_->use());
    for (const TokenId id : ids) {
      if (id >= 0 && id < tokenizer_->vocab_size()) continue;
      raise_error({ErrorCode::out_of_range,
                   "token id " + std::to_string(id) + " is outside the vocabulary of " +
                       std::to_string(tokenizer_->vocab_size()),
                   "", ""});
    }
    return without_gil([&] { return tokenizer_->decode(ids, skip_special); });
  }

  /// (token ids, warnings); see render_conversation().
  py::tuple render(const std::string& messages, const std::optional<std::string>& tools,
                   const std::optional<std::string>& template_args, bool adds_generation_prompt) {
    const auto use = value_or_raise(model_->use());
    const Conversation given{messages, tools, template_args, adds_generation_prompt};
    const RenderedConversation rendered = value_or_raise(without_gil([&] {
      return render_conversation(model_->opened(), given, SystemClock().unix_seconds());
    }));
    return py::make_tuple(rendered.ids, rendered.warnings);
  }

  std::unique_ptr<PyRun> submit(std::vector<TokenId> prompt, const py::object& params,
                                bool keeps_pieces) {
    const auto use = value_or_raise(model_->use());
    Request request = request_of(params, model_->default_sampling());
    RunOptions options = run_options_of(params, request);
    request.adapters = adapters_of(params, model_->engine().model());
    if (request.sampling.dry_multiplier > 0) {
      request.sampling.dry_breakers = breakers_->find(breakers_of(params)).ids;
    }
    options.keeps_pieces = keeps_pieces;
    request.prompt = std::move(prompt);
    std::optional<Result<std::shared_ptr<Run>>> run;
    wait_until([&](milliseconds time) {
      run = model_->try_submit(request, options, time);
      return run.has_value();
    });
    return std::make_unique<PyRun>(model_, value_or_raise(std::move(*run)), tokenizer_);
  }

  /// float32 [rows, vocab].
  py::array_t<float> logits(const std::vector<TokenId>& ids, bool last_only) {
    const auto use = value_or_raise(model_->use());
    const auto num_tokens = static_cast<int64_t>(ids.size());
    const int64_t num_rows = last_only ? 1 : num_tokens;
    check_logits(num_tokens, num_rows);
    LocalModel::SessionTurn turn(*model_);
    wait_until([&](milliseconds time) { return turn.wait(time); });
    check_memory(num_tokens, num_rows);

    const auto vocab = static_cast<size_t>(model_->opened().model->info().vocab_size);
    py::array_t<float> out({static_cast<py::ssize_t>(num_rows), static_cast<py::ssize_t>(vocab)});
    float* rows = out.mutable_data();
    const auto session = model_->opened().session(num_tokens);
    const auto part = static_cast<size_t>(model_->opened().options.chunk_tokens);
    std::span<const TokenId> left(ids);
    while (!left.empty()) {
      const auto now = left.first(std::min(part, left.size()));
      left = left.subspan(now.size());
      LogitsFor wanted = LogitsFor::all;
      if (last_only) wanted = left.empty() ? LogitsFor::last : LogitsFor::none;
      const auto keep = [&](int64_t position, std::span<const float> row) {
        const auto at = last_only ? 0 : static_cast<size_t>(position);
        std::copy(row.begin(), row.end(), rows + at * vocab);
      };
      succeed_or_raise(without_gil([&] { return session->feed(now, wanted, keep); }));
      check_signals();
      if (model_->is_closing()) raise_error({ErrorCode::cancelled, "the model was closed", "", ""});
    }
    return out;
  }

  py::dict stats() {
    const auto use = value_or_raise(model_->use());
    return stats_of(model_->engine().stats());
  }
  void close() {
    without_gil([&] { model_->close(); });
  }
  void abandon() { model_->abandon(); }

 private:
  void check_logits(int64_t num_tokens, int64_t num_rows) const {
    if (num_tokens == 0) {
      raise_error({ErrorCode::invalid_argument, "there are no tokens", "", ""});
    }
    if (num_tokens > model_->opened().context) {
      raise_error({ErrorCode::context_length_exceeded,
                   "there are " + std::to_string(num_tokens) + " tokens, the context is " +
                       std::to_string(model_->opened().context),
                   "", "give fewer, or open the model with a larger context"});
    }
    check_memory(num_tokens, num_rows);
  }
  void check_memory(int64_t num_tokens, int64_t num_rows) const {
    const uint64_t needed = model_->session_bytes(num_tokens, num_rows);
    const uint64_t available = memory_available_bytes();
    if (needed <= available) return;
    raise_error({ErrorCode::resource_exhausted,
                 "logits of " + std::to_string(num_rows) + " tokens take " +
                     std::to_string(needed >> 20) + " MiB, " + std::to_string(available >> 20) +
                     " MiB are free",
                 "", "give fewer tokens, or ask for those of the last one only"});
  }

  std::shared_ptr<LocalModel> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const BreakerFinder> breakers_;
};

/// What of the parameters is wrong for every model.
void check_params(const py::object& params) {
  check_counts(params);
  const Request request = request_of(params, documented_sampling());
  succeed_or_raise(
      validate(request.sampling, request.stop, int64_t{std::numeric_limits<TokenId>::max()}));
  run_options_of(params, request);
  breakers_of(params);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.attr("version") = HEADRACE_VERSION;
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const InternalError& fault) {
      try {
        raise_error({ErrorCode::internal, fault.what(), "", ""});
      } catch (py::error_already_set& error) {
        error.restore();
      }
    }
  });
  module.def("resolve", &resolve);
  module.def("pull", &pull_by_name);
  module.def("check_params", &check_params);
  py::class_<PyRun>(module, "Run")
      .def("wait", &PyRun::wait)
      .def("next_pieces", &PyRun::next_pieces)
      .def("cancel", &PyRun::cancel)
      .def("state", &PyRun::state);
  py::class_<PyModel>(module, "Model")
      .def(py::init(&PyModel::open))
      .def("info", &PyModel::info)
      .def("warnings", &PyModel::warnings)
      .def("tokenize", &PyModel::tokenize)
      .def("detokenize", &PyModel::detokenize)
      .def("render", &PyModel::render)
      .def("submit", &PyModel::submit)
      .def("logits", &PyModel::logits)
      .def("stats", &PyModel::stats)
      .def("close", &PyModel::close)
      .def("abandon", &PyModel::abandon);
}

}  // namespace headrace::python
