// GET /, /dashboard and the files of the page.
#include <string>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/replies.h"
#include "web/web_assets.h"

namespace headrace::server {
namespace {

constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

/// Whether an Accept-Encoding names gzip and does not refuse it.
bool takes_gzip(std::string_view accepted) {
  const size_t at = accepted.find("gzip");
  if (at == accepted.npos) return false;
  const std::string_view rest = accepted.substr(at + 4);
  return !rest.starts_with(";q=0") || rest.starts_with(";q=0.");
}

}  // namespace

void page(ServerState& state, ExchangePtr exchange) {
  const HttpRequest& request = exchange->request();
  const web::WebAsset* asset = web::find_web_asset(request.path);
  if (asset == nullptr || !state.options.has_page) {
    exchange->reply(error_reply(404, "There is no such file here."));
    return;
  }
  HttpReply out;
  out.content_type = asset->content_type;
  out.headers = {{"ETag", std::string(asset->etag)}, {"Cache-Control", "no-cache"},
                 {"Vary", "Accept-Encoding"},        {"Content-Security-Policy", kContentPolicy},
                 {"Referrer-Policy", "no-referrer"}, {"Cross-Origin-Opener-Policy", "same-origin"}};
  if (request.header("if-none-match") == asset->etag) {
    out.status = 304;
  } else if (takes_gzip(request.header("accept-encoding"))) {
    out.headers.push_back({"Content-Encoding", "gzip"});
    out.body = asset->gzip;
  } else {
    auto plain = web::plain(*asset);
    if (!plain.ok()) {
      exchange->reply(error_reply(500, "The file cannot be read."));
      return;
    }
    out.body = std::move(plain).value();
  }
  exchange->reply(std::move(out));
}

}  // namespace headrace::server
