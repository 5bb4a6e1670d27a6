#include "model/load/matrix_storage.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

class PlainStorage : public MatrixStorage {
 public:
  Result<StoredMatrix> Find(const Checkpoint& checkpoint, const std::string& name, int32_t n,
                            int32_t k, int32_t stack) const override {
    return FindPlainMatrix(checkpoint, name, n, k, stack);
  }
};

constexpr Result<std::unique_ptr<MatrixStorage>> (*kMakers[])(const Checkpoint&) = {
    MakeMlxAffineStorage,
};

// The tensor `name`, which must have `shape`, as a matrix [n, k].
Result<StoredMatrix> FindTensor(const Checkpoint& checkpoint, const std::string& name,
                                const std::vector<int64_t>& shape, int32_t n, int32_t k) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* tensor, checkpoint.Get(name));
  if (tensor->shape != shape) {
    return DataLoss(fmt::format("{}: tensor {} has the shape {}; expected {}", checkpoint.path(),
                                name, ShapeText(tensor->shape), ShapeText(shape)),
                    name);
  }
  const quant::Format* format = quant::FindFormat(DTypeName(tensor->dtype));
  if (format == nullptr) {
    return Unimplemented(fmt::format("{}: tensor {} is {}, which cannot be computed with",
                                     checkpoint.path(), name, DTypeName(tensor->dtype)),
                         name);
  }
  return StoredMatrix{{format, {{tensor->data.data()}}, n, k, {}}, {tensor}};
}

// A checkpoint that says it is quantised, in a way that none of the makers took.
Status UnknownQuantization(const HfConfig& config) {
  constexpr const char* kKey = "quantization_config";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<HfConfig> object, config.GetObjectOr(kKey));
  if (!object) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string method, object->GetString("quant_method"));
  const Status error = object->Error("quant_method", "'" + method + "' is not supported");
  return Unimplemented(error.message(), error.param());
}

}  // namespace

Result<std::unique_ptr<MatrixStorage>> StorageOf(const Checkpoint& checkpoint) {
  for (const auto make : kMakers) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<MatrixStorage> storage, make(checkpoint));
    if (storage != nullptr) return storage;
  }
  if (checkpoint.config() != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(UnknownQuantization(*checkpoint.config()));
  }
  return std::unique_ptr<MatrixStorage>(std::make_unique<PlainStorage>());
}

Result<StoredMatrix> FindVector(const Checkpoint& checkpoint, const std::string& name, int32_t n) {
  return FindTensor(checkpoint, name, {n}, 1, n);
}

Result<StoredMatrix> FindPlainMatrix(const Checkpoint& checkpoint, const std::string& name,
                                     int32_t n, int32_t k, int32_t stack) {
  return FindTensor(checkpoint, name, StoredShape(n, k, stack), n, k);
}

std::vector<int64_t> StoredShape(int64_t n, int64_t width, int32_t stack) {
  if (stack == 0) return {n, width};
  return {stack, n / stack, width};
}

}  // namespace lockstep
