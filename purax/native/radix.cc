#include "radix.h"

namespace purax {
namespace {

constexpr int64_t kInsertion = 40;  // elements up to which insertion is faster

template <class Item>
void insertion_sort(Item* items, int64_t size) {
  for (int64_t i = 1; i < size; ++i) {
    Item own = items[i];
    int64_t j = i;
    for (; j > 0 && key_of(items[j - 1]) > key_of(own); --j) items[j] = items[j - 1];
    items[j] = own;
  }
}

}  // namespace

template <class Item>
Item* radix_sort(Workers* workers, Item* a, Item* b, int64_t size) {
  using Key = decltype(key_of(*a));
  constexpr int digits = sizeof(Key);
  using Counts = uint32_t[256];
  if (size <= kInsertion) {
    insertion_sort(a, size);
    return a;
  }
  int64_t parts = workers ? std::min<int64_t>({workers->count(), size / (kManyThreads / 4), 64}) : 1;
  if (size < kManyThreads || parts < 1) parts = 1;
  int64_t length = ceil_div(size, parts);
  auto each_part = [&](const std::function<void(int64_t)>& task) {
    if (parts == 1) {
      task(0);
    } else {
      workers->run(parts, size * 16, task);
    }
  };
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
