// See process.h. Between fork and exec the child calls only what is allowed after a fork of a
// program with threads.
#include "base/os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern char** environ;

namespace headrace {
namespace {

constexpr int kTickMilliseconds = 100;

Error system_error(const std::string& what, int error_number) {
  return Error{ErrorCode::io_error, what + ": " + std::strerror(error_number), "", ""};
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

/// The full path of a program, looked up in PATH; "" if there is none.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? name : std::string();
  }
  const char* set = std::getenv("PATH");
  const std::string path = set != nullptr ? set : "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? std::string(".") : folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return "";
}

std::vector<std::string> child_environment(const ProcessOptions& options) {
  const auto is_replaced = [&](std::string_view entry) {
    const auto name = entry.substr(0, entry.find('='));
    for (const auto& [set, value] : options.environment) {
      if (set == name) return true;
    }
    return std::find(options.unset.begin(), options.unset.end(), name) != options.unset.end();
  };
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_replaced(*entry)) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.environment) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

class Runner {
 public:
  explicit Runner(const ProcessOptions& options) : options_(options) {}
  ~Runner() {
    if (child_ > 0 && !reaped_) {
      ::kill(-child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  Result<ProcessResult> run() {
    HEADRACE_TRY(start());
    const auto begin = std::chrono::steady_clock::now();
    // A grandchild may keep the pipes open for ever; the program itself is what counts.
    while (!has_ended() || anything_to_read()) {
      HEADRACE_TRY(exchange());
      const bool late = options_.timeout.count() > 0 &&
                        std::chrono::steady_clock::now() - begin >= options_.timeout;
      if (late && !result_.timed_out) {
        result_.timed_out = true;
        ::kill(-child_, SIGKILL);
      }
      if (!result_.stopped && options_.on_tick && tick_is_due() && !options_.on_tick()) {
        result_.stopped = true;
        ::kill(-child_, SIGKILL);
      }
    }
    if (options_.on_tick && !result_.stopped) options_.on_tick();
    return std::move(result_);
  }

 private:
  Result<void> start() {
    if (options_.argv.empty()) {
      return Error{ErrorCode::invalid_argument, "no program given", "", ""};
    }
    const std::string program = find_program(options_.argv.front());
    if (program.empty()) {
      return Error{ErrorCode::not_found, "no such program in PATH", options_.argv.front(), ""};
    }
    HEADRACE_ASSIGN(Pipe input, make_pipe());
    HEADRACE_ASSIGN(Pipe output, make_pipe());
    HEADRACE_ASSIGN(Pipe error, make_pipe());
    HEADRACE_ASSIGN(Pipe failure, make_pipe());
    // All memory is taken before the fork.
    auto argv_texts = options_.argv;
    auto environment_texts = child_environment(options_);
    const auto argv = pointers(argv_texts);
    const auto environment = pointers(environment_texts);
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) return system_error("cannot start " + program, errno);
    if (child_ == 0) {
      const int fds[3] = {input.read.get(), output.write.get(), error.write.get()};
      run_child(program.c_str(), argv.data(), environment.data(), fds, parent);
      const int error_number = errno;
      [[maybe_unused]] const auto written =
          ::write(failure.write.get(), &error_number, sizeof(error_number));
      ::_exit(127);
    }
    ::setpgid(child_, child_);
    failure.write.close();
    int error_number = 0;
    ssize_t got = 0;
    do {
      got = ::read(failure.read.get(), &error_number, sizeof(error_number));
    } while (got < 0 && errno == EINTR);
    if (got == static_cast<ssize_t>(sizeof(error_number))) {
      wait_for_end();
      return system_error("cannot start " + program, error_number);
    }
    in_ = std::move(input.write);
    out_ = std::move(output.read);
    err_ = std::move(error.read);
    ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
    if (options_.input.empty()) in_.close();
    return {};
  }

  /// Returns only if the program could not be started; errno says why.
  void run_child(const char* program, char* const* argv, char* const* environment, const int* fds,
                 pid_t parent) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 3; ++i) {
      if (::dup2(fds[i], i) < 0) return;
    }
    const std::string& folder = options_.working_directory;
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) return;
    ::execve(program, argv, environment);
  }

  Result<void> exchange() {
    std::array<struct pollfd, 3> fds{};
    fds[0] = {in_.get(), POLLOUT, 0};
    fds[1] = {out_.get(), POLLIN, 0};
    fds[2] = {err_.get(), POLLIN, 0};
    // With its pipes closed only waitpid tells of the end: look often.
    const int wait = out_.is_open() || err_.is_open() ? kTickMilliseconds : kTickMilliseconds / 10;
    if (::poll(fds.data(), fds.size(), wait) < 0 && errno != EINTR) {
      return system_error("cannot wait for a program", errno);
    }
    if (in_.is_open() && fds[0].revents != 0) feed();
    if (out_.is_open() && fds[1].revents != 0) drain(out_, result_.out);
    if (err_.is_open() && fds[2].revents != 0) drain(err_, result_.err);
    return {};
  }

  void feed() {
    // The child may have gone: then write fails with EPIPE, and the signal must not end us.
    struct sigaction ignore {};
    struct sigaction before {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &before);
    const ssize_t put =
        ::write(in_.get(), options_.input.data() + fed_, options_.input.size() - fed_);
    const int error_number = errno;
    ::sigaction(SIGPIPE, &before, nullptr);
    if (put > 0) fed_ += static_cast<size_t>(put);
    const bool broken = put < 0 && error_number != EAGAIN && error_number != EINTR;
    if (broken || fed_ == options_.input.size()) in_.close();
  }

  void drain(Descriptor& from, std::string& to) const {
    std::array<char, 16384> buffer;
    for (;;) {
      const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        from.close();
        return;
      }
      const size_t room =
          options_.max_output_bytes - std::min(options_.max_output_bytes, to.size());
      to.append(buffer.data(), std::min(room, static_cast<size_t>(got)));
    }
  }

  bool anything_to_read() const {
    std::array<struct pollfd, 2> fds{};
    fds[0] = {out_.get(), POLLIN, 0};
    fds[1] = {err_.get(), POLLIN, 0};
    return ::poll(fds.data(), fds.size(), 0) > 0;
  }

  bool tick_is_due() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_tick_ < std::chrono::milliseconds(kTickMilliseconds)) return false;
    last_tick_ = now;
    return true;
  }

  bool has_ended() {
    if (reaped_) return true;
    int status = 0;
    if (::waitpid(child_, &status, WNOHANG) == child_) note_status(status);
    return reaped_;
  }

  void wait_for_end() {
    int status = 0;
    pid_t waited = 0;
    do {
      waited = ::waitpid(child_, &status, 0);
    } while (waited < 0 && errno == EINTR);
    if (waited == child_) note_status(status);
    reaped_ = true;
  }

  void note_status(int status) {
    reaped_ = true;
    if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  }

  const ProcessOptions& options_;
  ProcessResult result_;
  pid_t child_ = -1;
  bool reaped_ = false;
  size_t fed_ = 0;
  Descriptor in_;
  Descriptor out_;
  Descriptor err_;
  std::chrono::steady_clock::time_point last_tick_{};
};

}  // namespace

Result<ProcessResult> run_process(const ProcessOptions& options) {
  return Runner(options).run();
}

}  // namespace headrace
