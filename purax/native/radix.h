// Radix sort: stable, by the bytes of unsigned keys from the least significant one on. Bytes that all keys share cost
// nothing. Long rows are first cut by their most significant byte, all threads together, into buckets that fit the
// cache; short ones are sorted by insertion.
#pragma once

#include "common.h"

namespace purax {

constexpr int64_t kManyThreads = 1 << 16;  // elements from which on threads share a row

// Positions are numbers of 32 bits, and so are the results of `top_k`, which have a sign.
constexpr int64_t kMostPositions = (int64_t(1) << 31) - 1;

// A key with a 32-bit companion: a position, or the element that moves along.
template <class Key>
struct Pair {
  Key key;
  uint32_t other;
};

inline uint32_t key_of(uint32_t item) { return item; }
inline uint64_t key_of(uint64_t item) { return item; }
template <class Key>
Key key_of(const Pair<Key>& item) { return item.key; }

// Sorts `a`, of at most kMostPositions items, with `b` as memory for as many; returns where the result is, one of the two. Workers may be null.
template <class Item>
Item* radix_sort(Workers* workers, Item* a, Item* b, int64_t size);

extern template uint32_t* radix_sort(Workers*, uint32_t*, uint32_t*, int64_t);
extern template uint64_t* radix_sort(Workers*, uint64_t*, uint64_t*, int64_t);
extern template Pair<uint32_t>* radix_sort(Workers*, Pair<uint32_t>*, Pair<uint32_t>*, int64_t);
extern template Pair<uint64_t>* radix_sort(Workers*, Pair<uint64_t>*, Pair<uint64_t>*, int64_t);

}  // namespace purax
