// See peer_socket.h.
#include "base/os/peer_socket.h"

#include <poll.h>

namespace headrace {

bool peer_has_closed(int socket) {
  pollfd look{};
  look.fd = socket;
  look.events = POLLRDHUP;
  return ::poll(&look, 1, 0) > 0 &&
         (look.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace headrace
