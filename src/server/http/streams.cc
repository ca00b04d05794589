// See streams.h.
#include "server/http/streams.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace headrace::server {
namespace {

class PlainStream final : public AnyStream {
 public:
  explicit PlainStream(RawSocket socket) : socket_(std::move(socket)) {}

  RawSocket& socket() override { return socket_; }
  void start_handshake(Done done) override { done({}, 0); }
  void start_read(asio::mutable_buffer buffer, Done done) override {
    socket_.async_read_some(buffer, std::move(done));
  }
  void start_write(asio::const_buffer buffer, Done done) override {
    socket_.async_write_some(buffer, std::move(done));
  }
  void start_shutdown(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }

 private:
  RawSocket socket_;
};

class TlsStream final : public AnyStream {
 public:
  TlsStream(RawSocket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}

  RawSocket& socket() override { return stream_.next_layer(); }
  void start_handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](ErrorCodeOf error) { done(error, 0); });
  }
  void start_read(asio::mutable_buffer buffer, Done done) override {
    stream_.async_read_some(buffer, std::move(done));
  }
  void start_write(asio::const_buffer buffer, Done done) override {
    stream_.async_write_some(buffer, std::move(done));
  }
  void start_shutdown(Done done) override {
    stream_.async_shutdown([done = std::move(done)](ErrorCodeOf error) { done(error, 0); });
  }

 private:
  asio::ssl::stream<RawSocket> stream_;
};

}  // namespace

std::unique_ptr<AnyStream> make_plain_stream(RawSocket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

std::unique_ptr<AnyStream> make_tls_stream(RawSocket socket, asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

Result<std::unique_ptr<asio::ssl::context>> make_tls_context(const TlsFiles& files) {
  using Context = asio::ssl::context;
  const auto fault = [](const std::string& file, const ErrorCodeOf& error) {
    return Error{ErrorCode::invalid_argument, "cannot be used for TLS: " + error.message(), file,
                 "give PEM files of a certificate and its key"};
  };
  auto context = std::make_unique<Context>(Context::tls_server);
  context->set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 |
                       Context::no_tlsv1 | Context::no_tlsv1_1);
  ErrorCodeOf error;
  context->use_certificate_chain_file(files.certificate, error);
  if (error) return fault(files.certificate, error);
  context->use_private_key_file(files.key, Context::pem, error);
  if (error) return fault(files.key, error);
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return Error{ErrorCode::invalid_argument, "is not the key of the certificate", files.key, ""};
  }
  return context;
}

Result<void> check_tls_files(const TlsFiles& files) {
  HEADRACE_TRY(make_tls_context(files));
  return {};
}

}  // namespace headrace::server
