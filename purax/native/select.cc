// The k largest elements along the last axis.
//
// A running threshold lets most elements be passed over by a comparison of whole vectors; what exceeds it is collected,
// and the threshold is raised whenever enough was collected. Equal elements keep their order.
#include <vector>

#include "checks.h"
#include "keys.h"
#include "radix.h"

namespace purax {
namespace {

constexpr int64_t kBlock = 256;

// A candidate: larger keys come first, then earlier positions.
template <class Key>
struct Candidate {
  Key key;
  uint32_t position;
  bool operator<(const Candidate& other) const {
    return key > other.key || (key == other.key && position < other.position);
  }
};

template <class Key>
void keep_largest(std::vector<Candidate<Key>>& found, int64_t k) {
  if (int64_t(found.size()) > k) {
    std::nth_element(found.begin(), found.begin() + (k - 1), found.end());
    found.resize(k);
  }
}

template <class Key>
void largest_of_range(const Order<Key>& order, const char* x, int64_t width, int64_t begin, int64_t end, int64_t k,
                      std::vector<Candidate<Key>>& found) {
  int64_t capacity = 2 * k + 1024;
  found.reserve(capacity + kBlock);
  Key threshold = 0;
  bool has_threshold = false;
  Key keys[kBlock];
  for (int64_t start = begin; start < end; start += kBlock) {
    int64_t count = std::min(kBlock, end - start);
    order.to_keys(x + start * width, 1, count, keys);
    if (has_threshold) {
      Key above = 0;
      for (int64_t i = 0; i < count; ++i) above |= Key(keys[i] > threshold);
      if (!above) continue;
    }
    // Of equal elements the first come first, so from the first threshold on only what is larger matters.
    for (int64_t i = 0; i < count; ++i) {
      if (!has_threshold || keys[i] > threshold) found.push_back({keys[i], uint32_t(start + i)});
    }
    if (int64_t(found.size()) >= capacity) {
      keep_largest(found, k);
      threshold = found[k - 1].key;
      has_threshold = true;
    }
  }
  keep_largest(found, k);
}

template <class Key>
void largest_of_row(Workers* workers, ffi::DataType dtype, const char* x, int64_t size, int64_t k, char* values,
                    int32_t* indices) {
  const Order<Key>& order = order_of<Key>(dtype);
  int64_t width = width_of(dtype);
  auto put = [&](int64_t i, uint32_t position) {
    std::memcpy(values + i * width, x + position * width, width);
    indices[i] = int32_t(position);
  };
  if (k > size / 8) {  // sort backwards
    Scratch<Pair<Key>> memory(2 * size);
    Pair<Key>* pairs = memory.get();
    for (int64_t start = 0; start < size; start += kBlock) {
      Key keys[kBlock];
      int64_t count = std::min(kBlock, size - start);
      order.to_keys(x + start * width, 1, count, keys);
      for (int64_t i = 0; i < count; ++i) pairs[start + i] = {Key(~keys[i]), uint32_t(start + i)};
    }
    const Pair<Key>* sorted = radix_sort(workers, pairs, pairs + size, size);
    for (int64_t i = 0; i < k; ++i) put(i, sorted[i].other);
    return;
  }
  std::vector<Candidate<Key>> found;
  int64_t parts = workers ? std::min<int64_t>(workers->count(), size / (8 * k + kManyThreads)) : 1;
  if (parts > 1) {
    std::vector<std::vector<Candidate<Key>>> each(parts);
    int64_t length = ceil_div(size, parts);
    workers->run(parts, size * 4, [&](int64_t part) {
      largest_of_range(order, x, width, part * length, std::min(size, (part + 1) * length), k, each[part]);
    });
    for (auto& own : each) found.insert(found.end(), own.begin(), own.end());
  } else {
    largest_of_range(order, x, width, 0, size, k, found);
  }
  std::partial_sort(found.begin(), found.begin() + k, found.end());
  for (int64_t i = 0; i < k; ++i) put(i, found[i].position);
}

ffi::Error top_k(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::Result<ffi::AnyBuffer> values,
                 ffi::Result<ffi::AnyBuffer> indices, int64_t rows, int64_t size, int64_t k) {
  rows = leading_count(operand, rows, {size});
  Workers workers(pool);
  ffi::DataType dtype = operand.element_type();
  if (!has_size(operand, {rows, size}) || !is_array_of(*values, dtype, {rows, k}) || k > size ||
      !is_array_of(*indices, ffi::DataType::S32, {rows, k})) {
    return wrong_sizes("top_k");
  }
  if (!rows || !k) return ffi::Error::Success();
  if (size > kMostPositions) return invalid("top_k: the positions are not numbers of 32 bits");
  int64_t width = width_of(dtype);
  if (!width) return invalid("top_k: a dtype without an order");
  auto* x = static_cast<const char*>(operand.untyped_data());
  auto* y = static_cast<char*>(values->untyped_data());
  auto* where = static_cast<int32_t*>(indices->untyped_data());
  auto* largest = has_wide_keys(dtype) ? largest_of_row<uint64_t> : largest_of_row<uint32_t>;
  auto row = [&](int64_t i, Workers* shared) {
    largest(shared, dtype, x + i * size * width, size, k, y + i * k * width, where + i * k);
  };
  if (rows < 2 * workers.count() && size >= kManyThreads) {
    for (int64_t i = 0; i < rows; ++i) row(i, &workers);
    return ffi::Error::Success();
  }
  int64_t group = std::max<int64_t>(1, 4096 / size);
  workers.run(ceil_div(rows, group), rows * size * 4, [&](int64_t task) {
    for (int64_t i = task * group; i < std::min(rows, (task + 1) * group); ++i) row(i, nullptr);
  });
  return ffi::Error::Success();
}

}  // namespace

PURAX_HANDLER(purax_top_k, top_k,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("rows")
                  .Attr<int64_t>("size")
                  .Attr<int64_t>("k"))

}  // namespace purax
