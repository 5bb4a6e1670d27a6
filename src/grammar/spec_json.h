// A GrammarSpec as the JSON that the Rust library reads, which is also its name in caches.
// Thread-safe; private to this folder.
#pragma once

#include <string>

#include "grammar/grammar.h"

namespace lockstep {

std::string SpecJson(const GrammarSpec& spec);

}  // namespace lockstep
