// Who may ask: API keys, Host and Origin. Must not know routes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "server/http/http_message.h"

namespace headrace::server {

/// A key, of which only the hash is kept, and what its owner may have.
struct ApiKey {
  std::array<uint8_t, 32> hash{};  ///< SHA-256
  std::string owner;               ///< fairness and prefix cache go by it
  int64_t max_requests = 0;        ///< waiting and running at once; 0: as many as the server
  int priority = 0;                ///< of its requests: smaller is first
};

/// A key given as such.
ApiKey api_key(std::string_view key, std::string owner);

/// Reads a file of keys: a line each, "KEY [owner=NAME] [max-requests=N] [priority=N]"; empty
/// lines and those that begin with '#' are left out. Errors (invalid_argument) with the line.
/// One without an owner is "key-N", counted from `num_before` + 1; no owner may be called so.
Result<std::vector<ApiKey>> read_api_keys(const std::string& path, size_t num_before = 0);
Result<std::vector<ApiKey>> parse_api_keys(std::string_view text, const std::string& name,
                                           size_t num_before = 0);

/// The first key of such a file, for who asks a server; the other lines may be anything. Errors:
/// those of reading, and invalid_argument where there is none.
Result<std::string> first_api_key(const std::string& path);

/// The key that a request carries, "Authorization: Bearer KEY" or "X-Api-Key: KEY"; "" where none.
std::string_view given_key(const HttpRequest& request);

/// All keys are compared, in the same time whichever fits. Null: none does.
const ApiKey* find_key(const std::vector<ApiKey>& keys, std::string_view given);

/// What a request with `key` (null: none) that asks for priority `asked` gets: the key's, or
/// something after it. Before it only where no other keys are: whose key it is could else push in
/// before all the others.
int allowed_priority(const std::vector<ApiKey>& keys, const ApiKey* key, int asked);

/// The name in a Host header, without port and in lower case.
std::string host_name(std::string_view host);
/// Whether `name` is this machine's own for itself.
bool is_loopback_name(std::string_view name);

struct OriginPolicy {
  /// Host names that requests may carry; empty: any. Else a page of another site could reach a
  /// server on the user's own machine by a name that it lets point there.
  std::vector<std::string> hosts;
  /// Origins other than the server's own whose pages may ask; "*": all.
  std::vector<std::string> origins;
};

/// Why a request is refused (403), or nothing.
std::optional<std::string> origin_fault(const OriginPolicy& policy, const HttpRequest& request);
/// Whether the request's origin is on the list, so that its page may read the answer.
bool is_listed_origin(const OriginPolicy& policy, const HttpRequest& request);

}  // namespace headrace::server
