#include "quant/format.h"

namespace lockstep::quant {
namespace {

constexpr std::span<const Format> (*kFamilies[])() = {FloatFormats, LegacyFormats, KQuantFormats,
                                                      MlxAffineFormats};

}  // namespace

const Format* FindFormat(std::string_view name) {
  for (const auto family : kFamilies) {
    for (const Format& format : family()) {
      if (format.name == name) return &format;
    }
  }
  return nullptr;
}

}  // namespace lockstep::quant
