// Runs a piece of a test in a child process: Start() acts once a process, and this one must stay
// without a recorder.
#ifndef RINGSCOPE_TESTS_UNIT_RECORDER_IN_CHILD_H_
#define RINGSCOPE_TESTS_UNIT_RECORDER_IN_CHILD_H_

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace ringscope {

// A directory of its own, removed afterwards.
class TempDir {
 public:
  TempDir() {
    char name[] = "/dev/shm/ringscope-test-XXXXXX";
    path_ = mkdtemp(name) ? name : "";
  }
  ~TempDir() { Remove(path_); }
  const std::string& path() const { return path_; }

  static void Remove(const std::string& path) {
    if (DIR* dir = opendir(path.c_str())) {
      chmod(path.c_str(), 0700);
      while (dirent* entry = readdir(dir)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") Remove(path + "/" + name);
      }
      closedir(dir);
      rmdir(path.c_str());
    } else {
      unlink(path.c_str());
    }
  }

 private:
  std::string path_;
};

// Regular files below `path`, sorted.
inline std::vector<std::string> FilesBelow(const std::string& path) {
  std::vector<std::string> files;
  DIR* dir = opendir(path.c_str());
  if (!dir) return files;
  while (dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat st;
    const std::string full = path + "/" + name;
    if (lstat(full.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) {
      for (const std::string& f : FilesBelow(full)) files.push_back(f);
    } else {
      files.push_back(full);
    }
  }
  closedir(dir);
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A child whose stderr goes to a file of its own. `body` runs in it; exit(0) follows, so the
// library's destructor runs, unless the body ends the process another way.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    char name[] = "/tmp/ringscope-test-stderr-XXXXXX";
    const int fd = mkstemp(name);
    stderr_path_ = name;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fd, 2);
      close(fd);
      alarm(60);
      body();
      exit(0);
    }
    close(fd);
  }
  ~Child() {
    if (!waited_) {
      kill(pid_, SIGKILL);
      Wait();
    }
    unlink(stderr_path_.c_str());
  }
  pid_t pid() const { return pid_; }
  // The wait status.
  int Wait() {
    if (!waited_) waitpid(pid_, &status_, 0);
    waited_ = true;
    return status_;
  }
  bool ExitedWell() { return WIFEXITED(Wait()) && WEXITSTATUS(Wait()) == 0; }
  std::string Stderr() const { return ReadAll(stderr_path_); }
  std::vector<std::string> StderrLines() const {
    std::vector<std::string> lines;
    std::string text = Stderr();
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

 private:
  pid_t pid_;
  int status_ = 0;
  bool waited_ = false;
  std::string stderr_path_;
};

// Waits until `done` holds, at most `seconds`.
inline bool Eventually(const std::function<bool()>& done, double seconds = 20) {
  for (int i = 0; i < seconds * 100; ++i) {
    if (done()) return true;
    usleep(10000);
  }
  return done();
}

}  // namespace ringscope

#endif  // RINGSCOPE_TESTS_UNIT_RECORDER_IN_CHILD_H_
