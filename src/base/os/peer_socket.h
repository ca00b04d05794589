// What the system knows of the other end of a connection.
#pragma once

namespace headrace {

/// Whether the peer of a connected socket has ended the connection, or its own half of it, without
/// reading any of the bytes that wait.
bool peer_has_closed(int socket);

}  // namespace headrace
