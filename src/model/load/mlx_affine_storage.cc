// Checkpoints that mlx-lm has quantised: module M is M.weight, M.scales and M.biases (layout in
// quant/mlx_affine/mlx_affine.h). config.json has an object "quantization", repeated as
// "quantization_config":
//
//   {"group_size": 64, "bits": 4, "mode": "affine",
//    "model.layers.0.mlp.down_proj": {"group_size": 32, "bits": 6}, "lm_head": false}
//
// An entry named after a module speaks for it; without one, the module is quantised when it has
// scales, with the bits and group that its shapes show (as mlx-lm does: not every writer lists the
// modules that differ from the defaults).
#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "model/load/matrix_storage.h"
#include "quant/mlx_affine/mlx_affine.h"

namespace lockstep {
namespace {

struct Scheme {
  uint32_t bits = 0;  // 0: not quantised
  uint32_t group = 0;
};

Status NotSupported(const HfConfig& object, std::string_view key, const std::string& value) {
  const Status error = object.Error(key, value + " is not supported");
  return Unimplemented(error.message(), error.param());
}

bool Exists(uint32_t bits, uint32_t group) {
  return quant::FindFormat(quant::MlxAffineName(bits, group, "BF16")) != nullptr;
}

bool IsSchemeKey(std::string_view key) {
  return key == "bits" || key == "group_size" || key == "mode";
}

// What an object says about bits and groups. What it leaves out is as mlx has it: 64 and 4.
Result<Scheme> ReadScheme(const HfConfig& object) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string mode, object.GetStringOr("mode", "affine"));
  if (mode != "affine") return NotSupported(object, "mode", "'" + mode + "'");
  Scheme scheme;
  LOCKSTEP_ASSIGN_OR_RETURN(scheme.bits, object.GetU32Or("bits", 4));
  LOCKSTEP_ASSIGN_OR_RETURN(scheme.group, object.GetU32Or("group_size", 64));
  if (!Exists(scheme.bits, 32)) return NotSupported(object, "bits", std::to_string(scheme.bits));
  if (!Exists(4, scheme.group)) {
    return NotSupported(object, "group_size", std::to_string(scheme.group));
  }
  return scheme;
}

class MlxAffineStorage : public MatrixStorage {
 public:
  MlxAffineStorage(std::string key, std::unordered_map<std::string, Scheme> modules)
      : key_(std::move(key)), modules_(std::move(modules)) {}

  Result<StoredMatrix> Find(const Checkpoint& checkpoint, const std::string& name, int32_t n,
                            int32_t k, int32_t stack) const override;

 private:
  std::string key_;  // of the object in config.json
  std::unordered_map<std::string, Scheme> modules_;
};

Result<StoredMatrix> MlxAffineStorage::Find(const Checkpoint& checkpoint, const std::string& name,
                                            int32_t n, int32_t k, int32_t stack) const {
  const std::string module = name.substr(0, name.rfind('.'));
  const std::string scales_name = module + ".scales";
  const std::string biases_name = module + ".biases";
  const TensorView* scales = checkpoint.Find(scales_name);
  const auto listed = modules_.find(module);
  if (listed != modules_.end() && (listed->second.bits != 0) != (scales != nullptr)) {
    return DataLoss(
        fmt::format("{}: {}.{} of config.json says that the module is {}quantised, "
                    "but tensor {} is {}",
                    checkpoint.path(), key_, module, listed->second.bits == 0 ? "not " : "",
                    scales_name, scales == nullptr ? "missing" : "there"),
        scales_name);
  }
  if (scales == nullptr) return FindPlainMatrix(checkpoint, name, n, k, stack);

  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* codes, checkpoint.Get(name));
  const auto wrong = [&](const TensorView& tensor, std::string_view what) {
    return DataLoss(fmt::format("{}: tensor {} is {} {}; {}", checkpoint.path(), tensor.name,
                                DTypeName(tensor.dtype), ShapeText(tensor.shape), what),
                    tensor.name);
  };
  Scheme scheme;
  if (listed != modules_.end()) {
    scheme = listed->second;
  } else {
    const size_t rank = stack == 0 ? 2 : 3;
    if (codes->shape.size() != rank || scales->shape.size() != rank || scales->shape.back() < 1) {
      return wrong(scales->shape.size() == rank ? *codes : *scales,
                   stack == 0 ? "expected a matrix" : "expected a stack of matrices");
    }
    scheme = {static_cast<uint32_t>(codes->shape.back() * 32 / k),
              static_cast<uint32_t>(k / scales->shape.back())};
    if (!Exists(scheme.bits, scheme.group)) {
      return wrong(*codes, fmt::format("with scales {} that is {} bits in groups of {}, which "
                                       "cannot be computed with",
                                       ShapeText(scales->shape), scheme.bits, scheme.group));
    }
  }
  const auto expected =
      fmt::format("expected {} bits in groups of {} for [{}, {}]", scheme.bits, scheme.group, n, k);
  const std::vector<int64_t> of_codes = StoredShape(n, int64_t{k} * scheme.bits / 32, stack);
  const std::vector<int64_t> of_constants = StoredShape(n, k / int64_t{scheme.group}, stack);
  if (k % scheme.group != 0 || codes->dtype != DType::kU32 || codes->shape != of_codes) {
    return wrong(*codes, expected);
  }
  const quant::Format* format =
      quant::FindFormat(quant::MlxAffineName(scheme.bits, scheme.group, DTypeName(scales->dtype)));
  if (format == nullptr || scales->shape != of_constants) return wrong(*scales, expected);
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* biases, checkpoint.Get(biases_name));
  if (biases->shape != of_constants || biases->dtype != scales->dtype) {
    return wrong(*biases, "expected it as the scales are");
  }
  return StoredMatrix{
      {format, {{codes->data.data(), scales->data.data(), biases->data.data()}}, n, k, {}},
      {codes, scales, biases}};
}

}  // namespace

Result<std::unique_ptr<MatrixStorage>> MakeMlxAffineStorage(const Checkpoint& checkpoint) {
  const HfConfig* config = checkpoint.config();
  if (config == nullptr) return std::unique_ptr<MatrixStorage>();
  const char* key = config->Has("quantization") ? "quantization" : "quantization_config";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<HfConfig> object, config->GetObjectOr(key));
  // Without a method's name the second is a copy of the first.
  if (!object || (!config->Has("quantization") && object->Has("quant_method"))) {
    return std::unique_ptr<MatrixStorage>();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Scheme defaults, ReadScheme(*object));
  std::unordered_map<std::string, Scheme> modules;
  for (const std::string& module : object->Keys()) {
    if (IsSchemeKey(module) || module == "quant_method" || !object->Has(module)) continue;
    if (const auto wanted = object->GetBool(module); wanted.ok()) {
      modules[module] = *wanted ? defaults : Scheme{};
      continue;
    }
    auto entry = object->GetObject(module);
    if (!entry.ok()) {
      return object->Error(module, "expected true, false or an object about a module");
    }
    for (const std::string& part : entry->Keys()) {
      if (!IsSchemeKey(part)) return NotSupported(*entry, part, "the setting");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(modules[module], ReadScheme(*entry));
  }
  return std::unique_ptr<MatrixStorage>(
      std::make_unique<MlxAffineStorage>(key, std::move(modules)));
}

}  // namespace lockstep
