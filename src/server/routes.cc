// The table of endpoints; see route.h.
#include <algorithm>
#include <array>

#include "server/endpoints/endpoints.h"
#include "server/route.h"

namespace headrace::server {
namespace {

constexpr Route generating(std::string_view path, void (*handle)(ServerState&, ExchangePtr)) {
  return {.method = "POST",
          .path = path,
          .runs_on = RunsOn::io_thread,
          .generates = true,
          .handle = handle};
}
constexpr Route of_anthropic(Route route) {
  route.errors = ErrorShape::anthropic;
  return route;
}
constexpr Route of_bodies(std::string_view path, void (*handle)(ServerState&, ExchangePtr)) {
  return {.method = "POST", .path = path, .runs_on = RunsOn::long_worker, .handle = handle};
}
constexpr Route working(std::string_view path, void (*handle)(ServerState&, ExchangePtr)) {
  return {.method = "GET", .path = path, .handle = handle};
}
constexpr Route of_the_page(std::string_view path, bool takes_rest) {
  return {.method = "GET",
          .path = path,
          .access = Access::everyone,
          .until = Until::always,
          .takes_rest = takes_rest,
          .is_routine = true,
          .handle = page};
}
constexpr Route public_health(std::string_view path, void (*handle)(ServerState&, ExchangePtr)) {
  return {.method = "GET",
          .path = path,
          .access = Access::everyone,
          .runs_on = RunsOn::io_thread,
          .until = Until::always,
          .is_routine = true,
          .handle = handle};
}

constexpr auto kRoutes = std::to_array<Route>({
    generating("/v1/chat/completions", chat_completions),
    generating("/v1/completions", completions),
    generating("/v1/responses", responses),
    of_anthropic(generating("/v1/messages", messages)),
    generating("/completion", llama_completion),
    generating("/v1/embeddings", embeddings),
    generating("/v1/rerank", rerank),
    generating("/rerank", rerank),
    // As llama-server has them: without /v1 the first is OpenAI's, the second its own.
    generating("/chat/completions", chat_completions),
    generating("/completions", llama_completion),
    of_anthropic(of_bodies("/v1/messages/count_tokens", count_tokens)),
    of_bodies("/tokenize", tokenize),
    of_bodies("/detokenize", detokenize),
    of_bodies("/apply-template", apply_template),
    working("/v1/models", list_models),
    working("/models", list_models),
    {.method = "GET", .path = "/v1/models/", .takes_rest = true, .handle = show_model},
    working("/lora-adapters", lora_adapters),
    working("/props", props),
    working("/slots", slots),
    {.method = "GET", .path = "/version", .until = Until::always, .handle = version},
    {.method = "GET",
     .path = "/metrics",
     .until = Until::always,
     .is_routine = true,
     .handle = metrics},
    {.method = "GET", .path = "/explain/", .takes_rest = true, .handle = explain},
    {.method = "GET", .path = "/dashboard/data", .is_routine = true, .handle = dashboard_data},
    {.method = "GET", .path = "/openapi.json", .until = Until::always, .handle = openapi},
    of_the_page("/", false),
    of_the_page("/dashboard", false),
    of_the_page("/assets/", true),
    public_health("/health", health),
    public_health("/v1/health", health),
    public_health("/livez", livez),
    public_health("/readyz", readyz),
});

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

FoundRoute find_route(std::string_view method, std::string_view path) {
  FoundRoute out;
  const std::string_view asked = method == "HEAD" ? "GET" : method;
  for (const Route& each : kRoutes) {
    const bool fits = each.takes_rest
                          ? path.starts_with(each.path) && path.size() > each.path.size()
                          : path == each.path;
    if (!fits) continue;
    if (each.method == asked) {
      out.route = &each;
      return out;
    }
    out.other_method = each.method;
  }
  return out;
}

ErrorShape error_shape(std::string_view path) {
  for (const Route& each : kRoutes) {
    const bool fits = path.starts_with(each.path) &&
                      (path.size() == each.path.size() || path[each.path.size()] == '/');
    if (fits && each.errors != ErrorShape::openai) return each.errors;
  }
  return ErrorShape::openai;
}

}  // namespace headrace::server
