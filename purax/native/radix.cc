#include "radix.h"

namespace purax {
namespace {

constexpr int64_t kInsertion = 40;  // elements up to which insertion is faster
constexpr int64_t kBuckets = 1 << 18;  // elements from which on one thread sorts by buckets, too

template <class Item>
void insertion_sort(Item* items, int64_t size) {
  for (int64_t i = 1; i < size; ++i) {
    Item own = items[i];
    int64_t j = i;
    for (; j > 0 && key_of(items[j - 1]) > key_of(own); --j) items[j] = items[j - 1];
    items[j] = own;
  }
}

using Counts = uint32_t[256];

// Calls `task(i)` for all i below `count`, by workers if there are any.
void for_tasks(Workers* workers, int64_t count, int64_t size, const std::function<void(int64_t)>& task) {
  if (workers && count > 1) return workers->run(count, size * 16, task);
  for (int64_t i = 0; i < count; ++i) task(i);
}

// Sorts by the lowest `digits` bytes alone, in the calling thread; returns where the result is.
template <class Item, int digits>
Item* sort_by_digits(Item* a, Item* b, int64_t size) {
  using Key = decltype(key_of(*a));
  Counts counts[digits] = {};
  for (int64_t i = 0; i < size; ++i) {
    Key key = key_of(a[i]);
    for (int d = 0; d < digits; ++d) ++counts[d][(key >> (8 * d)) & 255];
  }
  for (int d = 0; d < digits; ++d) {
    uint32_t* place = counts[d];
    if (place[(key_of(a[0]) >> (8 * d)) & 255] == size) continue;
    uint32_t start = 0;
    for (int v = 0; v < 256; ++v) {
      uint32_t own = place[v];
      place[v] = start;
      start += own;
    }
    for (int64_t i = 0; i < size; ++i) b[place[(key_of(a[i]) >> (8 * d)) & 255]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

template <class Item, int digits>
Item* sort_by_few_digits(int wanted, Item* a, Item* b, int64_t size) {
  if constexpr (digits > 0) {
    if (wanted < digits) return sort_by_few_digits<Item, digits - 1>(wanted, a, b, size);
    return sort_by_digits<Item, digits>(a, b, size);
  }
  return a;
}

// Sorts a long row: one pass by the highest bits in which keys differ cuts it into buckets, which are then sorted one by
// one, in the cache and without regard to each other. Returns where the result is; null, and has done nothing, where
// many keys would come into one bucket.
template <class Item>
Item* sort_by_buckets(Workers* workers, Item* a, Item* b, int64_t size, int64_t parts) {
  using Key = decltype(key_of(*a));
  int64_t length = ceil_div(size, parts);
  Scratch<Key> differences(parts);
  Key first = key_of(a[0]);
  for_tasks(workers, parts, size, [&](int64_t part) {
    Key all = 0;
    for (int64_t i = part * length, end = std::min(size, i + length); i < end; ++i) all |= key_of(a[i]) ^ first;
    differences[part] = all;
  });
  Key all = 0;
  for (int64_t part = 0; part < parts; ++part) all |= differences[part];
  int shift = 0;
  while (all >> shift > 255) ++shift;
  Scratch<Counts> counts(parts);
  for_tasks(workers, parts, size, [&](int64_t part) {
    uint32_t* own = counts[part];
    std::memset(own, 0, sizeof(Counts));
    for (int64_t i = part * length, end = std::min(size, i + length); i < end; ++i) ++own[(key_of(a[i]) >> shift) & 255];
  });
  int64_t begins[257];
  int64_t start = 0;
  for (int v = 0; v < 256; ++v) {
    begins[v] = start;
    for (int64_t part = 0; part < parts; ++part) start += counts[part][v];
    if (start - begins[v] > size / 32) return nullptr;
  }
  begins[256] = size;
  for (int v = 0; v < 256; ++v) {
    uint32_t place = uint32_t(begins[v]);
    for (int64_t part = 0; part < parts; ++part) {
      uint32_t own = counts[part][v];
      counts[part][v] = place;
      place += own;
    }
  }
  for_tasks(workers, parts, size, [&](int64_t part) {
    uint32_t* place = counts[part];
    for (int64_t i = part * length, end = std::min(size, i + length); i < end; ++i) {
      b[place[(key_of(a[i]) >> shift) & 255]++] = a[i];
    }
  });
  if (!shift) return b;
  int digits = (shift + 7) / 8;
  for_tasks(workers, 256, size, [&](int64_t v) {
    int64_t begin = begins[v], own = begins[v + 1] - begin;
    if (!own) return;
    Item* sorted = b + begin;
    if (own <= kInsertion) {
      insertion_sort(sorted, own);
    } else {
      sorted = sort_by_few_digits<Item, sizeof(Key)>(digits, b + begin, a + begin, own);
    }
    if (sorted != a + begin) std::memcpy(static_cast<void*>(a + begin), sorted, own * sizeof(Item));
  });
  return a;
}

}  // namespace

template <class Item>
Item* radix_sort(Workers* workers, Item* a, Item* b, int64_t size) {
  using Key = decltype(key_of(*a));
  constexpr int digits = sizeof(Key);
  if (size <= kInsertion) {
    insertion_sort(a, size);
    return a;
  }
  int64_t parts = workers ? std::min<int64_t>({workers->count(), size / (kManyThreads / 4), 64}) : 1;
  if (size < kManyThreads || parts < 1) parts = 1;
  if (size >= (parts > 1 ? kManyThreads : kBuckets)) {
    if (Item* sorted = sort_by_buckets(workers, a, b, size, parts)) return sorted;
  }
  int64_t length = ceil_div(size, parts);
  auto each_part = [&](const std::function<void(int64_t)>& task) { for_tasks(workers, parts, size, task); };
  Scratch<Counts> counts(parts * digits);
  each_part([&](int64_t part) {
    Counts* own = counts.get() + part * digits;
    std::memset(own, 0, digits * sizeof(Counts));
    for (const Item *at = a + part * length, *end = a + std::min(size, (part + 1) * length); at < end; ++at) {
      Key key = key_of(*at);
      for (int d = 0; d < digits; ++d) ++own[d][(key >> (8 * d)) & 255];
    }
  });
  Key first = key_of(a[0]);
  bool is_first = true;
  for (int d = 0; d < digits; ++d) {
    int shift = 8 * d;
    int64_t alike = 0;
    for (int64_t part = 0; part < parts; ++part) alike += counts[part * digits + d][(first >> shift) & 255];
    if (alike == size) continue;
    if (parts > 1 && !is_first) {  // what a part holds has changed
      each_part([&](int64_t part) {
        uint32_t* own = counts[part * digits + d];
        std::memset(own, 0, sizeof(Counts));
        for (const Item *at = a + part * length, *end = a + std::min(size, (part + 1) * length); at < end; ++at) {
          ++own[(key_of(*at) >> shift) & 255];
        }
      });
    }
    is_first = false;
    uint32_t start = 0;
    for (int v = 0; v < 256; ++v) {
      for (int64_t part = 0; part < parts; ++part) {
        uint32_t& own = counts[part * digits + d][v];
        uint32_t count = own;
        own = start;
        start += count;
      }
    }
    each_part([&](int64_t part) {
      uint32_t* place = counts[part * digits + d];
      Item* to = b;
      for (const Item *at = a + part * length, *end = a + std::min(size, (part + 1) * length); at < end; ++at) {
        to[place[(key_of(*at) >> shift) & 255]++] = *at;
      }
    });
    std::swap(a, b);
  }
  return a;
}

template uint32_t* radix_sort(Workers*, uint32_t*, uint32_t*, int64_t);
template uint64_t* radix_sort(Workers*, uint64_t*, uint64_t*, int64_t);
template Pair<uint32_t>* radix_sort(Workers*, Pair<uint32_t>*, Pair<uint32_t>*, int64_t);
template Pair<uint64_t>* radix_sort(Workers*, Pair<uint64_t>*, Pair<uint64_t>*, int64_t);

}  // namespace purax
