// Between Python's objects and the engine's. The Python side (headrace/*.py) checks types; here
// they become structs, and results become keyword arguments of its dataclasses.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "app/open_model.h"
#include "bindings/python/native/run.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace::python {

/// Throws the exception of headrace/_errors.py for it. With the GIL.
[[noreturn]] void raise_error(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise_error(result.error());
  return std::move(result).value();
}
inline void succeed_or_raise(const Result<void>& result) {
  if (!result.ok()) raise_error(result.error());
}

/// Of the keywords of LLM(); those that are None or absent keep their defaults.
OpenOptions open_options_of(const pybind11::dict& options);
EngineOptions engine_options_of(const pybind11::dict& options);

/// Everything of a request but its prompt and the tokens of breakers_of(). `params`: a
/// SamplingParams; what is None in it is as in `defaults`.
Request request_of(const pybind11::handle& params, const SamplingParams& defaults);

/// The adapters that a request uses. Raises NotFoundError: the model has none of that name.
std::vector<AdapterUse> adapters_of(const pybind11::handle& params, const ModelInfo& model);

/// The texts of `dry_sequence_breakers`, the usual ones for None. Throws for too many, or one too
/// long.
std::vector<std::string> breakers_of(const pybind11::handle& params);

/// Throws for a number of `params` that no model takes, which a Request could not tell from none at
/// all.
void check_counts(const pybind11::handle& params);

/// What `request` and the rest of `params` ask of a Run. Throws for too many stop strings, or one
/// too long.
RunOptions run_options_of(const pybind11::handle& params, const Request& request);

/// {name: value} of ModelInfo and OpenedModel.
pybind11::dict info_of(const OpenedModel& model);
/// Keywords of Generation; see headrace/_native.pyi.
pybind11::dict state_of(const RunState& state, const Tokenizer& tokenizer);
/// [(choice, text, token record or None, finish reason or None)].
pybind11::list pieces_of(const std::vector<Piece>& pieces, const Tokenizer& tokenizer);
/// Keywords of EngineStats.
pybind11::dict stats_of(const EngineStats& stats);

}  // namespace headrace::python
