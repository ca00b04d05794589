// The body of a request as it comes: it takes memory for what is there, not for what a header says
// will come, as Beast's own string_body would. Only for the files of this folder that include
// Boost.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace::server {

/// A Body of Beast, to be read only.
struct GrowingBody {
  using value_type = std::string;

  static uint64_t size(const value_type& body) { return body.size(); }

  class reader {
   public:
    template <bool is_request, class FieldsOf>
    reader(boost::beast::http::header<is_request, FieldsOf>& /*header*/, value_type& body)
        : body_(body) {}

    void init(const boost::optional<uint64_t>& /*length*/, boost::system::error_code& error) {
      error = {};
    }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      size_t num_bytes = 0;
      for (const auto part : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(part.data()), part.size());
        num_bytes += part.size();
      }
      return num_bytes;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace headrace::server
