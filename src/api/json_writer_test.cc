#include "api/json_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/json.h"

namespace headrace::api {
namespace {

std::string written(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, WritesWhatTheLibraryWrites) {
  std::string all;
  for (int byte = 0; byte < 128; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_EQ(written(one), Json(one).dump()) << byte;
    all += one;
  }
  for (const std::string& text :
       {std::string(), all, std::string("h\xC3\xA9llo \xE4\xB8\xAD\xF0\x9F\x98\x80\n")}) {
    EXPECT_EQ(written(text), Json(text).dump());
  }
}

TEST(JsonWriter, ReplacesWhatIsNotUtf8) {
  for (const char* text : {"\xFF", "a\xC3", "\xED\xA0\x80z", "\xE4\xB8", "\xC3\xA9\x80"}) {
    const Json read = Json::parse(written(text));
    EXPECT_EQ(written(text), Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
    EXPECT_NE(read.get<std::string>().find("\xEF\xBF\xBD"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace::api
