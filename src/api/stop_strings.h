// Ends an answer at the first of some strings, without showing any part of it. Must not know
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::api {

/// Some strings to look for, none of them empty. Shared by the choices of a request.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> strings);

  size_t size() const { return strings_.size(); }
  const std::string& text(size_t i) const { return strings_[i]; }

  /// How much of string `i` stands at the end of a text, once `byte` comes behind one of which
  /// `matched` (less than all) stood there.
  size_t advance(size_t i, size_t matched, char byte) const;

 private:
  std::vector<std::string> strings_;
  /// Of each string and each number of its bytes: the longest shorter beginning that these end with
  /// (Knuth, Morris and Pratt 1977).
  std::vector<std::vector<uint32_t>> shorter_;
};

/// Looks for them in one text that comes in pieces. The match that ends first counts, of those that
/// end together the longest; so how the text is cut changes nothing. Time per byte is in proportion
/// to the number of strings.
class StopMatcher {
 public:
  /// `strings` may be null or empty: then all text passes at once.
  explicit StopMatcher(std::shared_ptr<const StopStrings> strings);

  /// What is certain to come before any stop string, in whole characters; the rest is held back.
  std::string push(std::string_view piece);
  /// What was held back, for no more text comes. "" after a stop.
  std::string finish();

  bool has_stopped() const { return stop_ >= 0; }
  /// The string that was found.
  const std::string& stop() const { return strings_->text(static_cast<size_t>(stop_)); }
  size_t held_bytes() const { return held_.size(); }

 private:
  std::shared_ptr<const StopStrings> strings_;
  std::vector<uint32_t> matched_;  ///< of each string, at the end of all text so far
  std::string held_;               ///< the longest of these
  int32_t stop_ = -1;
};

}  // namespace headrace::api
