// The files of the page in the binary are those of the source tree, complete and without a link
// elsewhere.
#include "web/web_assets.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace headrace::web {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// {path: file} of assets.txt.
std::map<std::string, std::filesystem::path> listed_assets() {
  const std::filesystem::path folder = std::filesystem::path(HEADRACE_SOURCE_DIR) / "src/web";
  std::istringstream lines(read_text(folder / "assets.txt"));
  std::map<std::string, std::filesystem::path> out;
  for (std::string line; std::getline(lines, line);) {
    std::string url;
    std::string file;
    if (line.starts_with('/') && std::istringstream(line) >> url >> file) {
      out[url] = folder / "page" / file;  // an absolute file stays what it is
    }
  }
  return out;
}

bool is_ours(const std::filesystem::path& file) {
  return file.string().starts_with(HEADRACE_SOURCE_DIR);
}

std::string plain_text(const WebAsset& asset) {
  Result<std::string> text = plain(asset);
  EXPECT_TRUE(text.ok()) << asset.path;
  return text.ok() ? *text : "";
}

/// Every text that stands between `before` and the next `end`.
std::set<std::string> texts_after(const std::string& text, const std::string& before, char end) {
  std::set<std::string> out;
  for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    out.insert(text.substr(at, text.find(end, at) - at));
  }
  return out;
}

TEST(WebAssets, InflateToTheirSources) {
  const auto listed = listed_assets();
  ASSERT_EQ(web_assets().size(), listed.size());
  for (const WebAsset& asset : web_assets()) {
    const auto found = listed.find(std::string(asset.path));
    ASSERT_NE(found, listed.end()) << asset.path;
    EXPECT_TRUE(plain_text(asset) == read_text(found->second)) << asset.path;
  }
}

TEST(WebAssets, AreSortedAndFound) {
  std::set<std::string_view> etags;
  for (const WebAsset& asset : web_assets()) {
    EXPECT_EQ(find_web_asset(asset.path), &asset);
    EXPECT_TRUE(asset.etag.size() == 26 && asset.etag.front() == '"' && asset.etag.back() == '"');
    EXPECT_FALSE(asset.content_type.empty());
    EXPECT_TRUE(etags.insert(asset.etag).second) << asset.path;
  }
  for (const char* path :
       {"", "/assets", "/assets/", "/assets/app.js/", "/ASSETS/app.js", "/zzz"}) {
    EXPECT_EQ(find_web_asset(path), nullptr) << path;
  }
}

TEST(WebAssets, ContentTypes) {
  EXPECT_EQ(find_web_asset("/")->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(find_web_asset("/dashboard")->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(find_web_asset("/assets/app.js")->content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(find_web_asset("/assets/base.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(find_web_asset("/assets/favicon.svg")->content_type, "image/svg+xml");
  EXPECT_EQ(find_web_asset("/assets/lib/chart.txt")->content_type, "text/plain; charset=utf-8");
}

TEST(WebAssets, PagesReferToAssetsOnly) {
  for (const char* page : {"/", "/dashboard"}) {
    const std::string text = plain_text(*find_web_asset(page));
    size_t num_assets = 0;
    for (const char* attribute : {"href=\"", "src=\""}) {
      for (const std::string& target : texts_after(text, attribute, '"')) {
        if (target.starts_with('#') || target == "./" || target == "dashboard") continue;
        EXPECT_NE(find_web_asset("/" + target), nullptr) << page << " " << target;
        ++num_assets;
      }
    }
    EXPECT_GE(num_assets, 4U) << page;
    EXPECT_EQ(text.find("style="), std::string::npos) << page;
    EXPECT_EQ(text.find("<style"), std::string::npos) << page;
    EXPECT_EQ(text.find("<script>"), std::string::npos) << page;
    EXPECT_EQ(text.find(" on"), text.find(" on ")) << page << ": no handler in HTML";
  }
}

TEST(WebAssets, ModulesImportAssetsOnly) {
  for (const auto& [path, file] : listed_assets()) {
    if (!is_ours(file) || file.extension() != ".js") continue;
    for (const std::string& target : texts_after(read_text(file), "from \"", '"')) {
      ASSERT_TRUE(target.starts_with("./")) << path << " " << target;
      EXPECT_NE(find_web_asset("/assets/" + target.substr(2)), nullptr) << path << " " << target;
    }
  }
}

TEST(WebAssets, OwnFilesNameNoOtherHost) {
  const std::string name_of_svg = "http://www.w3.org/2000/svg";  // a name; nobody fetches it
  for (const auto& [path, file] : listed_assets()) {
    if (!is_ours(file)) continue;
    std::string text = read_text(file);
    for (size_t at; (at = text.find(name_of_svg)) != std::string::npos;)
      text.erase(at, name_of_svg.size());
    for (const char* scheme : {"http://", "https://", "//cdn", "ws://", "wss://"}) {
      EXPECT_EQ(text.find(scheme), std::string::npos) << path << " " << scheme;
    }
  }
}

TEST(WebAssets, PlainRefusesWhatIsNotTheFile) {
  const WebAsset good = *find_web_asset("/assets/app.js");
  WebAsset cut = good;
  cut.gzip.remove_suffix(9);
  WebAsset longer = good;
  longer.plain_bytes += 1;
  WebAsset shorter = good;
  shorter.plain_bytes -= 1;
  std::string damaged(good.gzip);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x40);
  WebAsset changed = good;
  changed.gzip = damaged;
  WebAsset nothing = good;
  nothing.gzip = {};
  for (const WebAsset& asset : {cut, longer, shorter, changed, nothing}) {
    const Result<std::string> text = plain(asset);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().code, ErrorCode::corrupt_data);
  }
}

}  // namespace
}  // namespace headrace::web
