// See http_retry.h.
#include "store/http_retry.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace headrace {
namespace {

constexpr int kMaxTries = 5;
constexpr int64_t kMaxPatienceSeconds = 120;
constexpr std::chrono::milliseconds kFirstWait{500};
constexpr std::chrono::milliseconds kPoll{100};

bool is_transient(const HttpOutcome& outcome) {
  if (outcome.error) return outcome.is_transient;
  const int status = outcome.answer.status;
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501);
}

std::string reason_of(const HttpOutcome& outcome) {
  if (outcome.error) return outcome.error->message;
  return "the server answered " + std::to_string(outcome.answer.status);
}

std::string seconds_text(std::chrono::milliseconds time) {
  const auto tenths = (time.count() + 99) / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) +
         " s";
}

/// What a hub says of an error in its own words; a proxy's page is left out.
std::string said(const HttpOutcome& outcome) {
  std::string text = outcome.answer.header("x-error-message");
  if (text.size() > 300) text = text.substr(0, 300) + "...";
  return text.empty() ? "" : ": " + text;
}

Error denied(const HttpOutcome& outcome, const HttpPeer& peer) {
  const std::string status = " (" + std::to_string(outcome.answer.status) + ")";
  if (!peer.is_hub) {
    return {ErrorCode::io_error, "the server does not give it without a permission" + status,
            peer.what, "check the address; a token is only sent to the hub (hf:ORG/REPO)"};
  }
  if (!peer.has_token) {
    return {ErrorCode::io_error,
            "the hub does not give it without a token" + status + said(outcome), peer.what,
            "it is gated, private, or has another name: accept its terms at " + peer.page +
                " and set HF_TOKEN to a token of yours"};
  }
  return {ErrorCode::io_error, "the hub does not give it to this token" + status + said(outcome),
          peer.what, "accept its terms at " + peer.page + ", or set HF_TOKEN to another token"};
}

}  // namespace

bool HttpRetry::again(const HttpOutcome& outcome) {
  if (!is_transient(outcome) || ++num_tries_ >= kMaxTries) return false;
  std::chrono::milliseconds wait = kFirstWait * (1 << (num_tries_ - 1));
  if (!outcome.error) {
    const auto asked = retry_after_seconds(outcome.answer.header("retry-after"));
    if (asked && *asked > kMaxPatienceSeconds) return false;
    if (asked) wait = std::max(wait, std::chrono::milliseconds(*asked * 1000));
  }
  if (note_) {
    note_(what_ + ": " + reason_of(outcome) + "; trying again in " + seconds_text(wait) + " (" +
          std::to_string(num_tries_ + 1) + " of " + std::to_string(kMaxTries) + ")");
  }
  const auto end = std::chrono::steady_clock::now() + wait;
  while (std::chrono::steady_clock::now() < end) {
    if (keep_going_ && !keep_going_()) return true;  // the next try ends at once, as cancelled
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

Error http_error(const HttpOutcome& outcome, const HttpPeer& peer) {
  if (outcome.error) {
    Error error = *outcome.error;
    if (error.where.empty()) error.where = peer.what;
    return error;
  }
  const int status = outcome.answer.status;
  const std::string number = " (" + std::to_string(status) + ")";
  if (status == 401 || status == 403) return denied(outcome, peer);
  if (status == 404 || status == 410) {
    return {ErrorCode::not_found,
            (peer.is_hub ? "the hub has nothing of this name" : "the server has no such file") +
                number + said(outcome),
            peer.what, peer.is_hub ? "look at " + peer.page : "check the address"};
  }
  if (status == 429) {
    const auto seconds = retry_after_seconds(outcome.answer.header("retry-after"));
    return {ErrorCode::overloaded, "the server refuses so many requests" + number, peer.what,
            seconds
                ? "it asks to wait for " + std::to_string(*seconds) + " s"
                : "try again later" + std::string(peer.is_hub && !peer.has_token
                                                      ? "; with a token (HF_TOKEN) more are allowed"
                                                      : "")};
  }
  return {ErrorCode::io_error, "the server answered " + std::to_string(status) + said(outcome),
          peer.what, status >= 500 ? "try again later; what came is kept" : ""};
}

}  // namespace headrace
