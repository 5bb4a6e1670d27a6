#include "weights/safetensors.h"

namespace lockstep {

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(SafetensorsContents contents, ParseSafetensors(map.bytes(), path));
  return std::shared_ptr<const SafetensorsFile>(
      new SafetensorsFile(std::move(map), std::move(contents)));
}

SafetensorsFile::SafetensorsFile(MappedFile map, SafetensorsContents contents)
    : map_(std::move(map)), contents_(std::move(contents)) {
  for (size_t i = 0; i < contents_.tensors.size(); ++i) {
    index_.emplace(contents_.tensors[i].name, i);
  }
}

const TensorView* SafetensorsFile::FindTensor(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &contents_.tensors[found->second];
}

}  // namespace lockstep
