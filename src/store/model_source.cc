// See model_source.h.
#include "store/model_source.h"

#include <algorithm>

#include "store/file_names.h"

namespace headrace {
namespace {

constexpr std::string_view kHubPrefix = "hf:";
constexpr std::string_view kPackagePrefix = "pip:";
constexpr size_t kMaxRepoBytes = 96;
constexpr size_t kMaxUrlBytes = 4096;

Error wrong_source(std::string_view text, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(text.substr(0, 300)),
          "write NAME, hf:ORG/REPO[@REVISION][:FILE-OR-QUANTISATION], https://HOST/PATH/FILE.gguf, "
          "or pip:PACKAGE[==VERSION]"};
}

/// One part of a repository's name.
bool is_repo_part(std::string_view part) {
  return is_plain_word(part) && part.find("..") == std::string_view::npos &&
         part.find("--") == std::string_view::npos && part.front() != '-' && part.back() != '-' &&
         part.back() != '.';
}

bool is_repo(std::string_view repo) {
  if (repo.size() > kMaxRepoBytes) return false;
  const size_t slash = repo.find('/');
  if (slash == std::string_view::npos) return is_repo_part(repo);
  return is_repo_part(repo.substr(0, slash)) && is_repo_part(repo.substr(slash + 1));
}

/// A branch may have slashes ("refs/pr/1").
bool is_revision(std::string_view revision) {
  if (!check_file_name(revision).ok() || revision.size() > 200) return false;
  return std::all_of(revision.begin(), revision.end(), [](char c) {
    return c == '/' || is_plain_word(std::string{'a', c});
  });
}

/// Moves what follows a colon, if there is one, to `selector`; false where that is no name.
bool take_selector(std::string_view& rest, std::string& selector) {
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return true;
  selector = rest.substr(colon + 1);
  rest = rest.substr(0, colon);
  return check_file_name(selector).ok();
}

Error wrong_selector(std::string_view text) {
  return wrong_source(text, "what follows the colon is neither a file nor a quantisation");
}

Result<ModelSource> parse_hub(std::string_view text, std::string_view rest) {
  ModelSource source;
  source.kind = SourceKind::hub;
  if (!take_selector(rest, source.selector)) return wrong_selector(text);
  const size_t at = rest.find('@');
  source.revision = at == std::string_view::npos ? "main" : rest.substr(at + 1);
  source.repo = rest.substr(0, at);
  if (!is_repo(source.repo)) return wrong_source(text, "this is no name of a repository");
  if (!is_revision(source.revision)) return wrong_source(text, "this is no name of a revision");
  return source;
}

Result<ModelSource> parse_package(std::string_view text, std::string_view rest) {
  ModelSource source;
  source.kind = SourceKind::package;
  if (!take_selector(rest, source.selector)) return wrong_selector(text);
  const size_t equals = rest.find("==");
  source.package = rest.substr(0, equals);
  if (equals != std::string_view::npos) {
    source.version = rest.substr(equals + 2);
    // Versions may have an epoch and a local part: "1!2.0+cpu".
    std::string plain = source.version;
    std::replace(plain.begin(), plain.end(), '!', '.');
    std::replace(plain.begin(), plain.end(), '+', '.');
    if (!is_plain_word(plain) || plain.front() == '-')
      return wrong_source(text, "this is no version");
  }
  if (!is_plain_word(source.package) || source.package.front() == '-') {
    return wrong_source(text, "this is no name of a package");
  }
  return source;
}

Result<ModelSource> parse_url(std::string_view text) {
  const size_t host = text.find("://") + 3;
  const std::string_view authority = text.substr(host, text.find_first_of("/?#", host) - host);
  const bool has_bad = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '"' || c == '\\';
  });
  if (has_bad || text.size() > kMaxUrlBytes || authority.empty()) {
    return wrong_source(text, "this is no address of a file");
  }
  if (authority.find('@') != std::string_view::npos) {
    Error error =
        wrong_source(text.substr(0, host), "an address with a password in it is not used");
    error.hint = "it would be written where others can read it";
    return error;
  }
  const std::string file = url_file_name(text);
  if (!check_file_name(file).ok() || file.find('/') != std::string::npos ||
      !lower_case(file).ends_with(".gguf")) {
    return wrong_source(text, "the address does not end in the name of a .gguf file");
  }
  ModelSource source;
  source.kind = SourceKind::url;
  source.url = text;
  return source;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string with_selector(std::string text, const std::string& selector) {
  return selector.empty() ? text : text + ":" + selector;
}

}  // namespace

std::string url_file_name(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url = url.substr(scheme + 3);
  const size_t slash = url.rfind('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view name = url.substr(slash + 1);
  std::string decoded;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool is_escape = name[i] == '%' && i + 2 < name.size() && hex_digit(name[i + 1]) >= 0 &&
                           hex_digit(name[i + 2]) >= 0;
    if (is_escape) {
      decoded += static_cast<char>(hex_digit(name[i + 1]) * 16 + hex_digit(name[i + 2]));
      i += 2;
    } else {
      decoded += name[i];
    }
  }
  return decoded;
}

std::string ModelSource::to_string() const {
  switch (kind) {
    case SourceKind::hub:
      return with_selector("hf:" + repo + (revision == "main" ? "" : "@" + revision), selector);
    case SourceKind::url:
      return url.substr(0, url.find('?'));
    case SourceKind::package:
      return with_selector("pip:" + package + (version.empty() ? "" : "==" + version), selector);
    case SourceKind::name:
      break;
  }
  return name;
}

Result<ModelSource> parse_model_source(std::string_view text) {
  if (text.starts_with(kHubPrefix)) return parse_hub(text, text.substr(kHubPrefix.size()));
  if (text.starts_with(kPackagePrefix)) {
    return parse_package(text, text.substr(kPackagePrefix.size()));
  }
  if (text.starts_with("https://") || text.starts_with("http://")) return parse_url(text);
  if (text.find("://") != std::string_view::npos) {
    return wrong_source(text, "addresses begin with https:// here");
  }
  // A name has no slash in front of a colon.
  const std::string_view front = text.substr(0, text.find(':'));
  if (front.find('/') != std::string_view::npos) return parse_hub(text, text);
  if (text.empty() || !check_file_name(text).ok()) return wrong_source(text, "this is no name");
  ModelSource source;
  source.name = text;
  return source;
}

}  // namespace headrace
