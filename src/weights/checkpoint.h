// Checkpoint: the tensors (and config) of a model, whatever files they are in: a GGUF file (or the
// first part of a split one), a .safetensors file, or a Hugging Face folder (config.json with
// model.safetensors, or with model.safetensors.index.json and its shards; with both, the single
// file counts, as in transformers). Immutable after Open; thread-safe. Keep the shared_ptr as long
// as any view.
//
// A path is bytes: spaces, non-ASCII names, a trailing slash and symbolic links all work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "weights/gguf.h"
#include "weights/hf_config.h"
#include "weights/safetensors.h"
#include "weights/tensor.h"

namespace lockstep {

enum class CheckpointKind { kGguf, kSafetensors, kHfFolder };
std::string_view CheckpointKindName(CheckpointKind kind);

class Checkpoint {
 public:
  // A file's kind comes from its first bytes, then from its name. Errors: those of the readers, and
  // for a folder: kNotFound naming the missing config, weights or shard; kDataLoss for a tensor
  // that the index places in a shard which lacks it, or that a shard holds and the index lacks.
  static Result<std::shared_ptr<const Checkpoint>> Open(const std::string& path);

  CheckpointKind kind() const { return kind_; }
  const std::string& path() const { return path_; }

  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorView* Find(std::string_view name) const;  // null when absent
  // kNotFound naming the checkpoint and the tensor.
  Result<const TensorView*> Get(std::string_view name) const;

  const GgufFile* gguf() const { return gguf_.get(); }  // null unless kGguf
  std::span<const std::shared_ptr<const SafetensorsFile>> safetensors() const { return shards_; }
  // Null unless kHfFolder; generation_config() also when the folder has none.
  const HfConfig* config() const { return config_ ? &*config_ : nullptr; }
  const HfConfig* generation_config() const {
    return generation_config_ ? &*generation_config_ : nullptr;
  }
  // kHfFolder: the end-of-sequence ids of config.json (its text_config too) and
  // generation_config.json, ascending and unique. Empty for the other kinds.
  Result<std::vector<int32_t>> HfEosTokenIds() const;

  // Maps the advice onto every file.
  void Advise(MappedFile::Advice advice) const;
  // The same for `bytes`, a part of a tensor of this checkpoint.
  void Advise(MappedFile::Advice advice, std::span<const std::byte> bytes) const;
  // The files that hold the tensors, in the order of the tensors.
  std::vector<const MappedFile*> files() const;

 private:
  Checkpoint() = default;
  Status OpenFile();
  Status OpenFolder();
  Status OpenShards(const std::string& index_path);
  void IndexTensors();

  CheckpointKind kind_ = CheckpointKind::kGguf;
  std::string path_;
  std::shared_ptr<const GgufFile> gguf_;
  std::vector<std::shared_ptr<const SafetensorsFile>> shards_;
  std::optional<HfConfig> config_;
  std::optional<HfConfig> generation_config_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace lockstep
