#include "weights_checks.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/check.h"

namespace lockstep::fuzz {

void CheckTensors(const std::vector<TensorView>& tensors, std::span<const std::byte> file) {
  std::set<std::string> names;
  std::vector<std::span<const std::byte>> spans;
  volatile std::byte sink{};
  for (const TensorView& tensor : tensors) {
    LOCKSTEP_CHECK(names.insert(tensor.name).second);
    const auto bytes = TensorBytes(tensor.dtype, tensor.shape);
    LOCKSTEP_CHECK(bytes.ok() && *bytes == tensor.data.size());
    LOCKSTEP_CHECK(tensor.elements() == *ElementCount(tensor.shape));
    if (tensor.data.empty()) continue;
    LOCKSTEP_CHECK(tensor.data.data() >= file.data());
    LOCKSTEP_CHECK(tensor.data.data() + tensor.data.size() <= file.data() + file.size());
    sink = tensor.data.front();
    sink = tensor.data.back();
    spans.push_back(tensor.data);
  }
  (void)sink;
  std::sort(spans.begin(), spans.end(),
            [](const auto& a, const auto& b) { return a.data() < b.data(); });
  for (size_t i = 1; i < spans.size(); ++i) {
    LOCKSTEP_CHECK(spans[i - 1].data() + spans[i - 1].size() <= spans[i].data());
  }
}

}  // namespace lockstep::fuzz
