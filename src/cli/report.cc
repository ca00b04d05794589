// See report.h.
#include "cli/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

void print_error(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_error_json(const Error& error) {
  print_json({{"error",
               {{"code", error_code_name(error.code)},
                {"message", error.message},
                {"where", error.where},
                {"hint", error.hint}}}});
}

/// What is wrong, and the way out.
std::string one_line(const Error& error) {
  std::string text = error.where.empty() ? "" : printable(error.where) + ": ";
  text += printable(error.message);
  if (!error.hint.empty()) text += " (" + printable(error.hint) + ")";
  return text;
}

}  // namespace

int fail(const Error& error, bool json) {
  const std::string label = styled("error:", Style::red, colors_on_stderr());
  print_error("headrace: " + label + " " + one_line(error) + "\n");
  if (json) print_error_json(error);
  return kFailed;
}

int fail_usage(std::string_view command, const Error& error, bool json) {
  const std::string name =
      command.empty() ? std::string("headrace") : "headrace " + std::string(command);
  print_error(name + ": " + one_line(error) + "; see " + name + " --help\n");
  if (json) print_error_json(error);
  return kWrongUsage;
}

void warn(std::string_view text) {
  const std::string label = styled("warning:", Style::yellow, colors_on_stderr());
  print_error("headrace: " + label + " " + printable(text) + "\n");
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const nlohmann::json& value) {
  print(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

bool flush_output() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

}  // namespace headrace::cli
