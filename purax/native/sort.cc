// Sorting along an axis: one array, or several that move together by the first of them.
//
// One array is sorted by value. Of several, the keys give an order of positions, from the least significant key to the
// most significant one, and every array is read in that order.
#include <vector>

#include "checks.h"
#include "keys.h"
#include "radix.h"

namespace purax {
namespace {

constexpr int64_t kColumns = 16;  // columns that are sorted by one task where the axis is not the last

struct Shape {
  int64_t outer, size, inner;
  int64_t count() const { return outer * size * inner; }
};

// Calls `rows(offset, n, workers)` for n rows that begin at `offset` and the elements after it: in parallel, and then
// without workers, or, where the rows are few and long, with workers to share them.
void for_rows(Workers& workers, const Shape& shape,
              const std::function<void(int64_t, int64_t, Workers*)>& rows) {
  if (shape.size >= kManyThreads && shape.outer * shape.inner < 2 * workers.count()) {
    for (int64_t i = 0; i < shape.outer; ++i) {
      for (int64_t j = 0; j < shape.inner; ++j) rows(i * shape.size * shape.inner + j, 1, &workers);
    }
    return;
  }
  int64_t blocks = ceil_div(shape.inner, kColumns);
  int64_t group = shape.inner == 1 ? std::max<int64_t>(1, 4096 / shape.size) : 1;
  int64_t groups = ceil_div(shape.outer, group);
  workers.run(groups * blocks, shape.count() * 16, [&](int64_t task) {
    int64_t start = task % blocks * kColumns, width = std::min(kColumns, shape.inner - start);
    int64_t begin = task / blocks * group, end = std::min(shape.outer, begin + group);
    for (int64_t i = begin; i < end; ++i) rows(i * shape.size * shape.inner + start, width, nullptr);
  });
}

bool is_float(ffi::DataType dtype) {
  return dtype == ffi::DataType::F16 || dtype == ffi::DataType::BF16 || dtype == ffi::DataType::F32 ||
         dtype == ffi::DataType::F64;
}

// Zeros of both signs are equal, but their keys are not: they are written once more, in the order in which they came.
template <class Key>
void restore_zeros(const Order<Key>& order, ffi::DataType dtype, const Key* sorted, const char* x, char* y,
                   int64_t size, int64_t step) {
  if (!is_float(dtype)) return;
  uint64_t nothing = 0;
  int64_t width = width_of(dtype);
  Key zero, own;
  order.to_keys(&nothing, 1, 1, &zero);
  const Key *end = sorted + size, *place = std::lower_bound(sorted, end, Key(zero - 1));
  if (place == end || *place != zero - 1 || !std::binary_search(place, end, zero)) return;
  char* to = y + (place - sorted) * step * width;
  for (int64_t i = 0; i < size; ++i) {
    const char* from = x + i * step * width;
    order.to_keys_with_equal_zeros(from, 1, 1, &own);
    if (own != zero) continue;
    std::memcpy(to, from, width);
    to += step * width;
  }
}

template <class Key>
void sort_values(Workers& workers, const Shape& shape, ffi::DataType dtype, const char* x, char* y) {
  const Order<Key>& order = order_of<Key>(dtype);
  int64_t width = width_of(dtype), size = shape.size, step = shape.inner;
  for_rows(workers, shape, [&](int64_t offset, int64_t count, Workers* shared) {
    // Columns are read and written all at once, since each line of the cache holds elements of all of them.
    Scratch<Key> memory((count + 1) * size);
    Key *rows = memory.get(), *spare = rows + count * size;
    if (count == 1) {
      int64_t parts = shared ? shared->count() : 1, length = ceil_div(size, parts);
      auto each_part = [&](const std::function<void(int64_t, int64_t)>& task) {
        if (!shared) return task(0, size);
        shared->run(parts, size * 16, [&](int64_t part) {
          int64_t begin = part * length;
          if (begin < size) task(begin, std::min(length, size - begin));
        });
      };
      each_part([&](int64_t begin, int64_t own) {
        order.to_keys(x + (offset + begin * step) * width, step, own, rows + begin);
      });
      Key* sorted = radix_sort(shared, rows, spare, size);
      each_part([&](int64_t begin, int64_t own) {
        order.from_keys(sorted + begin, y + (offset + begin * step) * width, step, own);
      });
      restore_zeros(order, dtype, sorted, x + offset * width, y + offset * width, size, step);
      return;
    }
    constexpr int64_t kStretch = 64;
    for (int64_t i = 0; i < size; i += kStretch) {
      int64_t own = std::min(kStretch, size - i);
      for (int64_t j = 0; j < count; ++j) {
        order.to_keys(x + (offset + i * step + j) * width, step, own, rows + j * size + i);
      }
    }
    std::vector<Key*> sorted(count);
    for (int64_t j = 0; j < count; ++j) {
      Key* own = rows + j * size;
      sorted[j] = radix_sort<Key>(nullptr, own, spare, size);
      if (sorted[j] == spare) spare = own;
    }
    for (int64_t i = 0; i < size; i += kStretch) {
      int64_t own = std::min(kStretch, size - i);
      for (int64_t j = 0; j < count; ++j) {
        order.from_keys(sorted[j] + i, y + (offset + i * step + j) * width, step, own);
      }
    }
    for (int64_t j = 0; j < count; ++j) {
      int64_t start = (offset + j) * width;
      restore_zeros(order, dtype, sorted[j], x + start, y + start, size, step);
    }
  });
}

// One key of an order: where its elements lie, `stride` elements of its dtype apart (complex numbers hold two keys).
struct KeyColumn {
  const char* data;
  int64_t stride;
  ffi::DataType dtype;
};

// Orders positions by a column; `order` is where they stand now, or null where that is 0, 1, 2, …
template <class Key>
void order_by(Workers* shared, const KeyColumn& column, int64_t offset, int64_t size, int64_t step, bool is_first,
              uint32_t* order) {
  Scratch<Pair<Key>> memory(2 * size);
  Pair<Key>* pairs = memory.get();
  const Order<Key>& rule = order_of<Key>(column.dtype);
  int64_t width = width_of(column.dtype), stride = step * column.stride;
  const char* data = column.data + offset * column.stride * width;
  int64_t parts = shared ? shared->count() : 1, length = ceil_div(size, parts);
  auto each_part = [&](const std::function<void(int64_t, int64_t)>& task) {
    if (!shared) return task(0, size);
    shared->run(parts, size * 16, [&](int64_t part) { task(part * length, std::min(size, (part + 1) * length)); });
  };
  each_part([&](int64_t begin, int64_t end) {
    constexpr int64_t kStretch = 256;
    Key keys[kStretch];
    for (int64_t i = begin; i < end; i += kStretch) {
      int64_t own = std::min(kStretch, end - i);
      if (is_first) {
        rule.to_keys_with_equal_zeros(data + i * stride * width, stride, own, keys);
        for (int64_t j = 0; j < own; ++j) pairs[i + j] = {keys[j], uint32_t(i + j)};
      } else {
        for (int64_t j = 0; j < own; ++j) {
          uint32_t at = order[i + j];
          rule.to_keys_with_equal_zeros(data + at * stride * width, stride, 1, keys);
          pairs[i + j] = {keys[0], at};
        }
      }
    }
  });
  const Pair<Key>* sorted = radix_sort(shared, pairs, pairs + size, size);
  each_part([&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) order[i] = sorted[i].other;
  });
}

template <class T>
void take(const char* from, char* to, int64_t step, const uint32_t* order, int64_t begin, int64_t end) {
  auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (int64_t i = begin; i < end; ++i) y[i * step] = x[order[i] * step];
}

struct Wide {
  uint64_t parts[2];
};

struct Column {
  const char* from;
  char* to;
  int64_t width;
  ffi::DataType dtype;

  void take(int64_t offset, int64_t step, const uint32_t* order, int64_t begin, int64_t end) const {
    const char* x = from + offset * width;
    char* y = to + offset * width;
    switch (width) {
      case 1: return purax::take<uint8_t>(x, y, step, order, begin, end);
      case 2: return purax::take<uint16_t>(x, y, step, order, begin, end);
      case 4: return purax::take<uint32_t>(x, y, step, order, begin, end);
      case 8: return purax::take<uint64_t>(x, y, step, order, begin, end);
      default: return purax::take<Wide>(x, y, step, order, begin, end);
    }
  }
};

void sort_together(Workers& workers, const Shape& shape, const std::vector<Column>& columns,
                   const std::vector<KeyColumn>& keys) {
  int64_t size = shape.size, step = shape.inner;
  for_rows(workers, shape, [&](int64_t offset, int64_t count, Workers* shared) {
    Scratch<uint32_t> order(size);
    for (int64_t row = offset; row < offset + count; ++row) {
      for (size_t k = keys.size(); k-- > 0;) {
        auto* sort = has_wide_keys(keys[k].dtype) ? order_by<uint64_t> : order_by<uint32_t>;
        sort(shared, keys[k], row, size, step, k + 1 == keys.size(), order.get());
      }
      int64_t parts = shared ? 4 * shared->count() : 1, length = ceil_div(size, parts);
      auto take_part = [&](int64_t part) {
        int64_t begin = part * length, end = std::min(size, begin + length);
        for (const Column& column : columns) column.take(row, step, order.get(), begin, end);
      };
      if (shared) {
        shared->run(parts, size * 16, take_part);
      } else {
        take_part(0);
      }
    }
  });
}

// A key of up to 32 bits and one array of 32 bits, sorted as pairs. Zeros of both signs have one key; they are written
// once more, in the order in which they came.
void sort_pair(Workers& workers, const Shape& shape, const Column& key, const Column& other) {
  const Order<uint32_t>& rule = order_of<uint32_t>(key.dtype);
  int64_t size = shape.size, step = shape.inner, width = key.width;
  uint32_t nothing = 0, zero = 0;
  rule.to_keys(&nothing, 1, 1, &zero);
  for_rows(workers, shape, [&](int64_t offset, int64_t count, Workers* shared) {
    Scratch<Pair<uint32_t>> memory(2 * size);
    Pair<uint32_t>* pairs = memory.get();
    int64_t parts = shared ? 2 * shared->count() : 1, length = ceil_div(size, parts);
    auto each_part = [&](const std::function<void(int64_t, int64_t)>& task) {
      if (!shared) return task(0, size);
      shared->run(parts, size * 16, [&](int64_t part) { task(part * length, std::min(size, (part + 1) * length)); });
    };
    constexpr int64_t kStretch = 256;
    for (int64_t row = offset; row < offset + count; ++row) {
      const char* x = key.from + row * width;
      char* y = key.to + row * width;
      auto* from = reinterpret_cast<const uint32_t*>(other.from) + row;
      auto* to = reinterpret_cast<uint32_t*>(other.to) + row;
      each_part([&](int64_t begin, int64_t end) {
        uint32_t keys[kStretch];
        for (int64_t i = begin; i < end; i += kStretch) {
          int64_t own = std::min(kStretch, end - i);
          rule.to_keys_with_equal_zeros(x + i * step * width, step, own, keys);
          for (int64_t j = 0; j < own; ++j) pairs[i + j] = {keys[j], from[(i + j) * step]};
        }
      });
      const Pair<uint32_t>* sorted = radix_sort(shared, pairs, pairs + size, size);
      each_part([&](int64_t begin, int64_t end) {
        uint32_t keys[kStretch];
        for (int64_t i = begin; i < end; i += kStretch) {
          int64_t own = std::min(kStretch, end - i);
          for (int64_t j = 0; j < own; ++j) {
            keys[j] = sorted[i + j].key;
            to[(i + j) * step] = sorted[i + j].other;
          }
          rule.from_keys(keys, y + i * step * width, step, own);
        }
      });
      if (!is_float(key.dtype)) continue;
      auto is_less = [](const Pair<uint32_t>& pair, uint32_t value) { return pair.key < value; };
      int64_t place = std::lower_bound(sorted, sorted + size, zero, is_less) - sorted;
      if (place == size || sorted[place].key != zero) continue;
      for (int64_t i = 0; i < size; ++i) {
        uint32_t own;
        rule.to_keys_with_equal_zeros(x + i * step * width, 1, 1, &own);
        if (own == zero) std::memcpy(y + place++ * step * width, x + i * step * width, width);
      }
    }
  });
}

void sort_one(Workers& workers, const Shape& shape, const Column& column) {
  auto* sort = has_wide_keys(column.dtype) ? sort_values<uint64_t> : sort_values<uint32_t>;
  sort(workers, shape, column.dtype, column.from, column.to);
}

ffi::Error sort(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results, int64_t num_keys,
                int64_t outer, int64_t size, int64_t inner) {
  Workers workers(pool);
  Shape shape{outer, size, inner};
  if (count_of({outer, size, inner}) < 0 || !operands.size() || results.size() != operands.size()) return wrong_sizes("sort");
  if (!shape.count()) return ffi::Error::Success();
  if (size > kMostPositions) return invalid("sort: the positions are not numbers of 32 bits");
  std::vector<Column> columns;
  std::vector<KeyColumn> keys;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = operands.get<ffi::AnyBuffer>(i);
    auto result = results.get<ffi::AnyBuffer>(i);
    if (!operand || !result) return invalid("sort: an operand or a result is no array");
    auto* data = static_cast<const char*>(operand->untyped_data());
    ffi::DataType dtype = operand->element_type();
    if (!has_size(*operand, {outer, size, inner}) || !is_array_of(**result, dtype, {outer, size, inner})) {
      return wrong_sizes("sort");
    }
    int64_t width = operand->size_bytes() / shape.count();
    columns.push_back({data, static_cast<char*>((*result)->untyped_data()), width, dtype});
    if (int64_t(i) >= num_keys) continue;
    if (dtype == ffi::DataType::C64 || dtype == ffi::DataType::C128) {
      auto real = dtype == ffi::DataType::C64 ? ffi::DataType::F32 : ffi::DataType::F64;
      keys.push_back({data, 2, real});
      keys.push_back({data + width / 2, 2, real});
    } else if (width_of(dtype)) {
      keys.push_back({data, 1, dtype});
    } else {
      return invalid("sort: a key of a dtype without an order");
    }
  }
  if (keys.empty()) return wrong_sizes("sort");
  if (columns.size() == 2 && keys.size() == 1 && !has_wide_keys(keys[0].dtype) && columns[1].width == 4) {
    sort_pair(workers, shape, columns[0], columns[1]);
  } else if (columns.size() > 1 || keys.size() > 1) {
    sort_together(workers, shape, columns, keys);
  } else {
    sort_one(workers, shape, columns[0]);
  }
  return ffi::Error::Success();
}

}  // namespace

PURAX_HANDLER(purax_sort, sort,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .RemainingArgs()
                  .RemainingRets()
                  .Attr<int64_t>("num_keys")
                  .Attr<int64_t>("outer")
                  .Attr<int64_t>("size")
                  .Attr<int64_t>("inner"))

// --- for arrays of NumPy, in the calling thread; dtypes are numbered as XLA does

enum Answer : int32_t { kNoMemory = -1, kNotServed, kDone };  // in purax/xla/native.py, too

template <class Sort>
int32_t answer(const Sort& sort) noexcept {
  try {
    sort();
    return kDone;
  } catch (...) {
    return kNoMemory;
  }
}

extern "C" PURAX_EXPORT int32_t purax_host_sort(int32_t dtype, const void* x, void* y, int64_t outer, int64_t size,
                                                int64_t inner) {
  auto type = static_cast<ffi::DataType>(dtype);
  if (!width_of(type) || size > kMostPositions || count_of({outer, size, inner}) < 0) return kNotServed;
  if (outer * size * inner == 0) return kDone;
  return answer([&] {
    Workers workers;
    sort_one(workers, {outer, size, inner}, {static_cast<const char*>(x), static_cast<char*>(y), width_of(type), type});
  });
}

// The stable order of each of `rows` rows.
extern "C" PURAX_EXPORT int32_t purax_host_argsort(int32_t dtype, const void* x, uint32_t* order, int64_t rows,
                                                   int64_t size) {
  auto type = static_cast<ffi::DataType>(dtype);
  if (!width_of(type) || size > kMostPositions || count_of({rows, size}) < 0) return kNotServed;
  if (rows * size == 0) return kDone;
  return answer([&] {
    KeyColumn column{static_cast<const char*>(x), 1, type};
    auto* sort = has_wide_keys(type) ? order_by<uint64_t> : order_by<uint32_t>;
    for (int64_t row = 0; row < rows; ++row) sort(nullptr, column, row * size, size, 1, true, order + row * size);
  });
}

}  // namespace purax
