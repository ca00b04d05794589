// A connection, plain or under TLS, so that what reads and writes it is compiled once. Only for the
// files of this folder that include Boost.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace headrace::server {

namespace asio = boost::asio;
using ErrorCodeOf = boost::system::error_code;
using RawSocket = asio::generic::stream_protocol::socket;

/// An asynchronous stream of bytes as Asio and Beast want one.
class AnyStream {
 public:
  using executor_type = asio::any_io_executor;
  using Done = std::function<void(ErrorCodeOf, size_t)>;

  virtual ~AnyStream() = default;
  virtual RawSocket& socket() = 0;
  virtual void start_handshake(Done done) = 0;
  virtual void start_read(asio::mutable_buffer buffer, Done done) = 0;
  virtual void start_write(asio::const_buffer buffer, Done done) = 0;
  /// Says that nothing more is sent, where the stream has a way to, and waits for the same.
  virtual void start_shutdown(Done done) = 0;

  executor_type get_executor() { return socket().get_executor(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return started(std::forward<Token>(token), [this, to = first_of<asio::mutable_buffer>(buffers)](
                                                   Done done) { start_read(to, std::move(done)); });
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return started(std::forward<Token>(token),
                   [this, from = first_of<asio::const_buffer>(buffers)](Done done) {
                     start_write(from, std::move(done));
                   });
  }
  template <class Token>
  auto async_handshake(Token&& token) {
    return started(std::forward<Token>(token),
                   [this](Done done) { start_handshake(std::move(done)); });
  }
  template <class Token>
  auto async_shutdown(Token&& token) {
    return started(std::forward<Token>(token),
                   [this](Done done) { start_shutdown(std::move(done)); });
  }

 private:
  template <class Buffer, class Buffers>
  static Buffer first_of(const Buffers& buffers) {
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers);
         ++at) {
      if (Buffer(*at).size() > 0) return *at;
    }
    return {};
  }

  /// Handlers can only be moved, a std::function wants to be copied: the handler is shared.
  template <class Token, class Start>
  static auto started(Token&& token, Start start) {
    return asio::async_initiate<Token, void(ErrorCodeOf, size_t)>(
        [](auto handler, Start begin) {
          auto shared = std::make_shared<std::decay_t<decltype(handler)>>(std::move(handler));
          begin([shared](ErrorCodeOf error, size_t size) { std::move (*shared)(error, size); });
        },
        token, std::move(start));
  }
};

}  // namespace headrace::server
