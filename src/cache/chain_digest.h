// ChainDigest: the name of a beginning of a token sequence, for where its tokens themselves are not
// at hand to be compared. A SHA-256 over what decides the bytes of its caches, the namespace, and
// its spans one after the other: nobody can find two beginnings of one name, so that an equal name
// is an equal beginning.
//
// Pure functions, thread-safe. They throw std::bad_alloc when there is no memory for the digest.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "core/types.h"

namespace lockstep {

using ChainDigest = std::array<std::byte, 32>;

// Of no token yet. `identity`: whatever else the bytes of the caches depend on.
ChainDigest ChainRoot(std::string_view identity, std::string_view name_space);

// Of the beginning that goes on from `before` with `span`.
ChainDigest ChainNext(const ChainDigest& before, std::span<const TokenId> span);

// Of a text alone.
ChainDigest DigestOf(std::string_view text);

}  // namespace lockstep
