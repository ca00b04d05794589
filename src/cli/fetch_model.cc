// See fetch_model.h.
#include "cli/fetch_model.h"

#include <cstdio>

#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

void print_plan(const PullPlan& plan) {
  std::string text = printable(plan.name);
  if (!plan.description.empty()) text += ": " + printable(plan.description);
  text += "\nDownload: ";
  text += plan.download_bytes > 0 ? size_text(plan.download_bytes) : "size unknown";
  if (plan.kept_bytes > 0) text += ", " + size_text(plan.kept_bytes) + " of them are here already";
  text += ".";
  if (!plan.license.empty()) text += " Licence: " + printable(plan.license);
  if (!plan.license_note.empty()) text += "\n" + plan.license_note;
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace

Result<PulledModel> fetch_with_progress(const ModelStore& store, const std::string& reference,
                                        const PullOptions& options) {
  const InterruptGuard guard({.catch_terminate = true});
  ProgressBar bar;
  PullHooks hooks;
  hooks.progress = [&](const PullProgress& now) {
    const std::string label =
        now.num_files > 1
            ? file_label(now.file, now.file_number, now.num_files, now.file_done_bytes,
                         now.file_total_bytes, terminal_columns(StandardStream::error, 80))
            : now.stage;
    bar.update(label, now.done_bytes, now.total_bytes);
  };
  hooks.keep_going = [] { return !InterruptGuard::interrupted(); };
  hooks.announce = print_plan;
  hooks.note = [&](const std::string& text) {
    bar.clear();
    std::fprintf(stderr, "headrace: %s\n", printable(text).c_str());
  };
  return store.fetch(reference, hooks, options);
}

Result<std::string> fetch_model(const ModelStore& store, const std::string& name) {
  HEADRACE_ASSIGN(PulledModel pulled, fetch_with_progress(store, name, {}));
  return std::move(pulled.path);
}

Result<std::string> fetch_from_hub(const std::string& repo) {
  const std::string reference = repo.starts_with("hf:") ? repo : "hf:" + repo;
  HEADRACE_ASSIGN(const ModelStore store, ModelStore::open());
  if (const auto pulled = store.pulled_as(reference)) return pulled->path;
  auto fetched = fetch_model(store, reference);
  if (fetched.ok() || fetched.error().code != ErrorCode::io_error) return fetched;
  const auto here = store.resolve(reference);
  if (!here.ok()) return fetched;
  warn("the hub was not asked (" + fetched.error().message + "): what is here is used");
  return here->path;
}

}  // namespace headrace::cli
