#include "api/served_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/excerpt.h"

namespace lockstep {

Status CheckModelName(const ServedModel& model, std::string_view name) {
  if (model.any_model_name || name == model.id) return OkStatus();
  if (std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end()) {
    return OkStatus();
  }
  std::string known = fmt::format("'{}'", model.id);
  for (const std::string& alias : model.aliases) known += fmt::format(", '{}'", alias);
  return NotFound(
      fmt::format("the model '{}' does not exist; this server has {}", Excerpt(name), known),
      "model");
}

}  // namespace lockstep
