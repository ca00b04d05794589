// What is written is read again, whatever it is.
#include "api/sse.h"

#include <gtest/gtest.h>

#include <random>

#include "api/test_sse.h"

namespace headrace::api {
namespace {

/// As the data comes out of a reader: the three line ends are one.
std::string with_one_line_end(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

TEST(Sse, Bytes) {
  std::string out;
  append_sse(out, "", "{}");
  append_sse(out, "ping", "");
  append_sse_comment(out);
  EXPECT_EQ(out, "data: {}\n\nevent: ping\ndata: \n\n:\n\n");
}

TEST(Sse, LineEndsDoNotBreakTheFraming) {
  std::string out;
  append_sse(out, "a\ndata: forged", "one\r\ntwo\rthree\n\ndata: four\n");
  append_sse(out, "", " five: six");
  const auto events = read_sse(out);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "a");
  EXPECT_EQ(events[0].data, "one\ntwo\nthree\n\ndata: four\n");
  EXPECT_EQ(events[1].data, " five: six");
}

TEST(Sse, AnyDataComesBack) {
  std::mt19937 random(7);
  constexpr std::string_view kBytes("a:\r\n \0d\xF0\xFF", 9);
  for (int round = 0; round < 2000; ++round) {
    std::string out;
    std::vector<std::string> written;
    for (int event = 0; event < 3; ++event) {
      std::string& data = written.emplace_back();
      for (size_t left = random() % 12; left > 0; --left) data += kBytes[random() % kBytes.size()];
      append_sse(out, event == 1 ? "name" : "", data);
      append_sse_comment(out);
    }
    const auto events = read_sse(out);
    ASSERT_EQ(events.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(events[i].data, with_one_line_end(written[i]));
      EXPECT_EQ(events[i].name, i == 1 ? "name" : "");
    }
  }
}

}  // namespace
}  // namespace headrace::api
