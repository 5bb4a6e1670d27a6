#include "weights/gguf.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "weights/gguf_parse.h"
#include "weights/printable.h"

namespace lockstep {
namespace {

// Written by the splitter into every part.
constexpr std::string_view kSplitNumber = "split.no";  // from 0
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";  // of all parts

// "-00002-of-00003.gguf" for part number 1 of 3.
std::string PartSuffix(uint32_t number, uint32_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

}  // namespace

Result<std::shared_ptr<const GgufFile>> GgufFile::Open(const std::string& path) {
  std::shared_ptr<GgufFile> file(new GgufFile());
  LOCKSTEP_RETURN_IF_ERROR(file->OpenFirst(path));
  LOCKSTEP_RETURN_IF_ERROR(file->OpenOtherParts());
  for (size_t i = 0; i < file->tensors_.size(); ++i) {
    const std::string& name = file->tensors_[i].name;
    if (!file->index_.emplace(name, i).second) {
      return DataLoss(
          fmt::format("{}: tensor '{}' is in two parts of the split file", path, Printable(name)),
          Printable(name));
    }
  }
  return std::shared_ptr<const GgufFile>(std::move(file));
}

Status GgufFile::OpenFirst(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(GgufContents contents, ParseGguf(map.bytes(), path));
  parts_.push_back(std::move(map));
  version_ = contents.version;
  alignment_ = contents.alignment;
  metadata_ = GgufMetadata(path, std::move(contents.entries));
  tensors_ = std::move(contents.tensors);
  return OkStatus();
}

Status GgufFile::OpenOtherParts() {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t count, metadata_.GetU32Or(kSplitCount, 1));
  if (count <= 1) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t number, metadata_.GetU32(kSplitNumber));
  if (number != 0) {
    return InvalidArgument(fmt::format(
        "{}: is part {} of {} of a split file; open the first part (its name ends in {})", path(),
        uint64_t{number} + 1, count, PartSuffix(0, count)));
  }
  const std::string suffix = PartSuffix(0, count);
  if (!path().ends_with(suffix)) {
    return InvalidArgument(
        fmt::format("{}: is the first of {} parts, but the others cannot be found because its name "
                    "does not end in {}",
                    path(), count, suffix));
  }
  const std::string prefix = path().substr(0, path().size() - suffix.size());
  for (uint32_t i = 1; i < count; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(AddPart(prefix + PartSuffix(i, count), i, count));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t total,
                            metadata_.GetU64Or(kSplitTensors, tensors_.size()));
  if (total != tensors_.size()) {
    return DataLoss(fmt::format("{}: metadata key '{}' says {} tensors, but the {} parts hold {}",
                                path(), kSplitTensors, total, count, tensors_.size()),
                    std::string(kSplitTensors));
  }
  return OkStatus();
}

Status GgufFile::AddPart(const std::string& path, uint32_t number, uint32_t count) {
  auto map = MappedFile::Open(path);
  if (!map.ok()) {
    return map.status().WithContext(
        fmt::format("part {} of {} of the split file {}", number + 1, count, parts_[0].path()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(GgufContents contents, ParseGguf(map->bytes(), path));
  const GgufMetadata metadata(path, std::move(contents.entries));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t actual_number, metadata.GetU32(kSplitNumber));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t actual_count, metadata.GetU32(kSplitCount));
  if (actual_number != number || actual_count != count) {
    return DataLoss(fmt::format("{}: says it is part {} of {}, but its name says {} of {}", path,
                                uint64_t{actual_number} + 1, actual_count, number + 1, count),
                    std::string(kSplitNumber));
  }
  parts_.push_back(std::move(*map));
  tensors_.insert(tensors_.end(), std::make_move_iterator(contents.tensors.begin()),
                  std::make_move_iterator(contents.tensors.end()));
  return OkStatus();
}

const TensorView* GgufFile::FindTensor(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace lockstep
