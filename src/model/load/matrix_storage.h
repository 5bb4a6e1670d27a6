// MatrixStorage: which tensors of a checkpoint make up a matrix, and in which format. Most
// checkpoints keep a matrix as one tensor of its own type; a quantised Hugging Face folder says in
// config.json that some are several tensors. A way of keeping them is a file here and a line in
// matrix_storage.cc. Not the formats themselves: those are quant's.
//
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "quant/packed_weights.h"
#include "weights/checkpoint.h"

namespace lockstep {

struct StoredMatrix {
  quant::Source source;
  std::vector<const TensorView*> tensors;  // what `source` reads, in the order of its planes
};

class MatrixStorage {
 public:
  virtual ~MatrixStorage() = default;
  // The matrix [n, k] called `name` ("lm_head.weight"). Errors name the file and the tensor or
  // key: kNotFound, kDataLoss (another shape than expected, parts that do not fit each other),
  // kUnimplemented (a type that cannot be computed with). With `stack`, it is kept as [stack,
  // n / stack, k], matrices of one shape one after the other.
  virtual Result<StoredMatrix> Find(const Checkpoint& checkpoint, const std::string& name,
                                    int32_t n, int32_t k, int32_t stack) const = 0;
};

// How `checkpoint` keeps its matrices. kUnimplemented when its configuration says that it is
// quantised in a way that is not known here.
Result<std::unique_ptr<MatrixStorage>> StorageOf(const Checkpoint& checkpoint);

// A vector [n], as a matrix of one row. Norms and biases are kept plainly everywhere.
Result<StoredMatrix> FindVector(const Checkpoint& checkpoint, const std::string& name, int32_t n);

// For the implementations: a matrix kept as one tensor.
Result<StoredMatrix> FindPlainMatrix(const Checkpoint& checkpoint, const std::string& name,
                                     int32_t n, int32_t k, int32_t stack);

// The shape of what is kept for `n` rows of `width` elements: [n, width], or with a stack
// [stack, n / stack, width].
std::vector<int64_t> StoredShape(int64_t n, int64_t width, int32_t stack);

// The ways, each null when `checkpoint` is not kept in it.
Result<std::unique_ptr<MatrixStorage>> MakeMlxAffineStorage(const Checkpoint& checkpoint);

}  // namespace lockstep
