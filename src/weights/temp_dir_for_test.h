// TempDir: a folder that lives as long as the object. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace lockstep {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "weights_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }

  std::string Path(std::string_view name) const { return (path_ / name).string(); }
  // Writes a file (and the folders above it) and returns its path.
  std::string Write(std::string_view name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    return Path(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
