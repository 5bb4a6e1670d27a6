#include "cache/chain_digest.h"

#include <openssl/sha.h>

#include <cstdint>
#include <new>
#include <vector>

namespace lockstep {
namespace {

ChainDigest Sha256(std::span<const std::byte> bytes) {
  ChainDigest digest;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  if (SHA256(data, bytes.size(), out) == nullptr) throw std::bad_alloc();
  return digest;
}

void Append(std::span<const std::byte> bytes, std::vector<std::byte>* to) {
  to->insert(to->end(), bytes.begin(), bytes.end());
}

}  // namespace

ChainDigest DigestOf(std::string_view text) { return Sha256(std::as_bytes(std::span(text))); }

ChainDigest ChainRoot(std::string_view identity, std::string_view name_space) {
  // Each by a digest of its own, so that no text can pass for the end of one and the beginning of
  // the other.
  std::vector<std::byte> both;
  Append(DigestOf(identity), &both);
  Append(DigestOf(name_space), &both);
  return Sha256(both);
}

ChainDigest ChainNext(const ChainDigest& before, std::span<const TokenId> span) {
  std::vector<std::byte> bytes;
  bytes.reserve(before.size() + span.size_bytes());
  Append(before, &bytes);
  Append(std::as_bytes(span), &bytes);
  return Sha256(bytes);
}

}  // namespace lockstep
