// How far the steps of a tokenizer.json before its vocabulary may shorten a text. With the longest
// token of the vocabulary this says how few tokens a text can have, before it is tokenised.
// Private to this folder. Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

// n: what reaches the vocabulary has at least 1/n of the text's bytes. None: nothing is sure, since
// a step may drop any part of the text, or is not known here. An ill-formed `json` is none as well.
std::optional<size_t> ShrinkFactor(std::string_view json);

}  // namespace lockstep
