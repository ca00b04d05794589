// See fetch_model.h.
#include "cli/fetch_model.h"

#include <cstdio>

#include "base/os/signals.h"
#include "cli/progress_bar.h"
#include "cli/terminal_text.h"

namespace headrace::cli {

Result<std::string> fetch_model(const ModelStore& store, const std::string& name) {
  const CatalogEntry* entry = store.catalog_entry(name);
  // A file of that name is either the model, or in the way: nothing is downloaded.
  if (entry != nullptr && !store.find(name)) {
    uint64_t bytes = 0;
    for (const auto& part : entry->parts) bytes += part.download_bytes;
    const std::string note = entry->license_note.empty() ? "" : "\n" + entry->license_note;
    std::fprintf(stderr, "%s: %s\nDownload: %s. Licence: %s%s\n", entry->name.c_str(),
                 entry->description.c_str(), size_text(bytes).c_str(), entry->license.c_str(),
                 note.c_str());
  }
  const InterruptGuard guard({.catch_terminate = true});
  ProgressBar bar;
  return store.pull(
      name,
      [&](const PullProgress& now) { bar.update(now.stage, now.done_bytes, now.total_bytes); },
      [] { return !InterruptGuard::interrupted(); });
}

}  // namespace headrace::cli
