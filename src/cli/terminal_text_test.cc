#include "cli/terminal_text.h"

#include <gtest/gtest.h>

#include "cli/progress_bar.h"

namespace headrace::cli {
namespace {

TEST(Printable, MakesUntrustedTextHarmless) {
  EXPECT_EQ(printable("plain, ä 漢 😀"), "plain, ä 漢 😀");
  EXPECT_EQ(printable("a\x1b[31mred"), "a\\x1b[31mred");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // the one-byte form of ESC [
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gpj.exe"),
            "\\u202egpj.exe");  // right-to-left override
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(SizeText, IsShort) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(999), "999 bytes");
  EXPECT_EQ(size_text(1000), "1.0 kB");
  EXPECT_EQ(size_text(98362432), "98.4 MB");
  EXPECT_EQ(size_text(999'999), "1.0 MB");
  EXPECT_EQ(size_text(UINT64_MAX), "18.4 EB");
}

TEST(Wrapped, BreaksAtWordsAndKeepsShapedLines) {
  EXPECT_EQ(wrapped("aa bb cc", 5, 0), "aa bb\ncc");
  EXPECT_EQ(wrapped("aa bb cc", 7, 2), "aa bb\n  cc");
  EXPECT_EQ(wrapped("aa\n\nbb", 80, 0), "aa\n\nbb");
  EXPECT_EQ(wrapped("aa\n  x   y\nbb", 4, 0), "aa\n  x   y\nbb");
  EXPECT_EQ(wrapped("longerthanwidth b", 4, 0), "longerthanwidth\nb");
  EXPECT_EQ(wrapped("", 4, 0), "");
}

TEST(Styled, OnlyWhereWanted) {
  EXPECT_EQ(styled("x", Style::red, false), "x");
  EXPECT_EQ(styled("x", Style::red, true), "\x1b[31mx\x1b[0m");
  EXPECT_FALSE(colors_on_stdout());  // a test's output is no terminal
}

TEST(ProgressLine, FitsItsTerminal) {
  const std::string line = progress_line("downloading", 50'000'000, 100'000'000, 5, 100);
  EXPECT_EQ(
      line,
      "downloading [============>           ]  50 % 50.0 MB of 100.0 MB, 10.0 MB/s, 5 s left");
  for (const int columns : {0, 1, 10, 40, 60, 80}) {
    for (const uint64_t done : {0ULL, 1ULL, 99ULL, 100ULL, 200ULL}) {
      EXPECT_LE(progress_line("x", done, 100, 1, columns).size(),
                static_cast<size_t>(std::max(columns - 1, 0)));
    }
  }
  EXPECT_EQ(progress_line("x", 40, 100, 2, 100, 20),
            "x [=========>              ]  40 % 40 bytes of 100 bytes, 10 bytes/s, 6 s left")
      << "what was there counts for no speed";
  EXPECT_EQ(progress_line("downloading", 40'000'000, 100'000'000, 8, 80),
            "downloading [====>     ]  40 % 40.0 MB of 100.0 MB, 5.0 MB/s, 12 s left");
  EXPECT_NE(progress_line("x", 1, 100'000, 10, 100).find("277.8 h left"), std::string::npos);
  EXPECT_EQ(file_label("a.gguf", 2, 5, 1, 4, 80), "file 2/5 25 %, all");
  EXPECT_EQ(file_label("a.gguf", 2, 5, 1, 4, 120), "file 2/5 a.gguf 25 %, all");
  EXPECT_EQ(progress_line("waiting", 0, 0, 1, 80), "waiting");
}

TEST(ShareLine, AsManyDetailsAsFit) {
  const std::vector<std::string> details = {"12 requests", "3.4 tokens/s"};
  EXPECT_EQ(share_line("x", 0.5, details, 80),
            "x [============>           ]  50 % 12 requests, 3.4 tokens/s");
  EXPECT_EQ(share_line("x", 0.5, details, 50), "x [=====>    ]  50 % 12 requests, 3.4 tokens/s")
      << "a shorter bar before fewer details";
  EXPECT_EQ(share_line("x", 0.5, details, 40), "x [=====>    ]  50 % 12 requests");
  EXPECT_EQ(share_line("x", -1, details, 80), "x 12 requests, 3.4 tokens/s");
}

}  // namespace
}  // namespace headrace::cli
