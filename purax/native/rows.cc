// Rows of a table that indices name, collected; and sums of many numbers into few that indices name.
//
// A table is (outer, rows, width), the indices are (outer, count), what is collected is (outer, count, width). Sums are
// made by a number of parts that does not depend on how many threads there are.
#include "types.h"

namespace purax {
namespace {

constexpr int64_t kAhead = 8;    // rows that are asked for before they are needed
constexpr int64_t kStreams = 4;  // of single numbers that are summed side by side

inline void fetch(const void* row, int64_t bytes) {
  for (int64_t line = 0; line < std::min<int64_t>(bytes, 512); line += 64) {
    __builtin_prefetch(static_cast<const char*>(row) + line);
  }
}

enum Mode { kClip, kFill };

template <class Index>
struct Table {
  int64_t outer, rows, count, width;
  const Index* indices;
};

template <class Index>
inline int64_t clipped(Index index, int64_t rows) {
  return std::min<int64_t>(std::max<int64_t>(index, 0), rows - 1);
}

template <class Index>
inline bool is_inside(Index index, int64_t rows) {
  return uint64_t(int64_t(index)) < uint64_t(rows);
}

// Collects rows of `kBytes` bytes, or of `bytes` if that is 0; `filler` is a row.
template <class Index, int64_t kBytes>
void collect(Workers& workers, const Table<Index>& table, const char* from, const char* filler, char* to, Mode mode,
             int64_t bytes) {
  if constexpr (kBytes != 0) bytes = kBytes;
  int64_t total = table.outer * table.count;
  int64_t share = std::max<int64_t>(1, (int64_t(1) << 17) / std::max<int64_t>(bytes, 8));
  workers.run(ceil_div(total, share), total * (bytes + 8), [&](int64_t task) {
    int64_t end = std::min(total, (task + 1) * share);
    int64_t size = bytes;
    if constexpr (kBytes != 0) size = kBytes;
    for (int64_t i = task * share; i < end;) {
      const char* own = from + i / table.count * table.rows * size;
      int64_t stop = std::min(end, (i / table.count + 1) * table.count);
      for (; i < stop; ++i) {
        if (kBytes == 0 && i + kAhead < stop) {
          fetch(own + clipped(table.indices[i + kAhead], table.rows) * size, size);
        }
        Index index = table.indices[i];
        bool reads = mode == kClip || is_inside(index, table.rows);
        std::memcpy(to + i * size, reads ? own + clipped(index, table.rows) * size : filler, size);
      }
    }
  });
}

template <class Index>
void gather_with(Workers& workers, const Table<Index>& table, const char* from, const char* fill, char* to,
                 Mode mode, int64_t item) {
  int64_t bytes = table.width * item;
  if (table.rows == 0) mode = kFill;  // nothing is inside
  Scratch<char> filler(bytes);
  for (int64_t j = 0; j < table.width; ++j) std::memcpy(filler.get() + j * item, fill, item);
  switch (bytes) {
    case 1: collect<Index, 1>(workers, table, from, filler.get(), to, mode, bytes); break;
    case 2: collect<Index, 2>(workers, table, from, filler.get(), to, mode, bytes); break;
    case 4: collect<Index, 4>(workers, table, from, filler.get(), to, mode, bytes); break;
    case 8: collect<Index, 8>(workers, table, from, filler.get(), to, mode, bytes); break;
    case 16: collect<Index, 16>(workers, table, from, filler.get(), to, mode, bytes); break;
    default: collect<Index, 0>(workers, table, from, filler.get(), to, mode, bytes);
  }
}

ffi::Error gather_rows(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::AnyBuffer indices, ffi::AnyBuffer fill,
                       ffi::Result<ffi::AnyBuffer> result, int64_t mode, int64_t outer, int64_t rows, int64_t count,
                       int64_t width) {
  Workers workers(pool);
  const ffi::DataType dtype = operand.element_type();
  if (!has_size(operand, {outer, rows, width}) || !has_size(indices, {outer, count}) || !is_array_of(fill, dtype, {1}) ||
      !is_array_of(*result, dtype, {outer, count, width}) || mode < kClip || mode > kFill) {
    return wrong_sizes("gather_rows");
  }
  if (!result->element_count()) return ffi::Error::Success();
  return for_index(indices.element_type(), "gather_rows", [&](auto zero) {
    using Index = decltype(zero);
    Table<Index> table{outer, rows, count, width, static_cast<const Index*>(indices.untyped_data())};
    gather_with(workers, table, static_cast<const char*>(operand.untyped_data()),
                static_cast<const char*>(fill.untyped_data()), static_cast<char*>(result->untyped_data()), Mode(mode),
                int64_t(fill.size_bytes()));
  });
}

// Parts of the updates have sums of their own, and four parts run side by side: were there one, then an addition to a
// place would have to wait for the one before wherever indices repeat.
template <class T, class Index>
void sum_by_parts(Workers& workers, const Table<Index>& table, const T* updates, T* to, bool clips, bool subtracts) {
  int64_t rows = table.rows;
  int64_t tasks = std::min<int64_t>(16, std::max<int64_t>(1, table.count / std::max<int64_t>(1 << 15, 16 * rows)));
  int64_t length = ceil_div(table.count, tasks * kStreams), pitch = rows + 1;  // the last place takes what is outside
  Scratch<T> memory(tasks * kStreams * pitch);
  workers.run(tasks, table.count * 8, [&](int64_t task) {
    T* sums = memory.get() + task * kStreams * pitch;
    std::fill(sums, sums + kStreams * pitch, T(0));
    const auto add_all = [&](auto place) {
      const Index* indices = table.indices;
      int64_t begin = task * kStreams * length;
      int64_t whole = std::max<int64_t>(0, std::min(length, table.count - begin - (kStreams - 1) * length));
      for (int64_t i = begin; i < begin + whole; ++i) {
#pragma GCC unroll 4
        for (int64_t s = 0; s < kStreams; ++s) {
          sums[s * pitch + place(indices[i + s * length])] += updates[i + s * length];
        }
      }
      for (int64_t s = 0; s < kStreams; ++s) {
        int64_t end = std::min(table.count, begin + (s + 1) * length);
        for (int64_t i = begin + s * length + whole; i < end; ++i) sums[s * pitch + place(indices[i])] += updates[i];
      }
    };
    if (clips) {
      add_all([rows](Index index) { return clipped(index, rows); });
    } else {  // a negative index without its sign is larger than any that is inside
      add_all([rows](Index index) { return int64_t(std::min<uint64_t>(uint64_t(int64_t(index)), uint64_t(rows))); });
    }
  });
  for (int64_t row = 0; row < rows; ++row) {
    T total = memory[row];
    for (int64_t part = 1; part < tasks * kStreams; ++part) total += memory[part * pitch + row];
    to[row] = subtracts ? to[row] - total : to[row] + total;
  }
}

// Adds the updates to the operand at the indices, or subtracts them. The result lies where the operand does.
ffi::Error sum_segments(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::AnyBuffer indices, ffi::AnyBuffer updates,
                        ffi::Result<ffi::AnyBuffer> result, bool subtracts, bool clips) {
  Workers workers(pool);
  const int64_t rows = int64_t(operand.element_count()), count = int64_t(updates.element_count());
  if (!is_array_of(*result, operand.element_type(), {rows}) || updates.element_type() != operand.element_type() ||
      !has_size(indices, {count})) {
    return wrong_sizes("sum_segments");
  }
  if (operand.untyped_data() != result->untyped_data()) {
    std::memcpy(result->untyped_data(), operand.untyped_data(), operand.size_bytes());
  }
  if (!rows || !count) return ffi::Error::Success();
  return for_number(operand.element_type(), "sum_segments", [&](auto number) {
    using T = Wrapping<decltype(number)>;
    return for_index(indices.element_type(), "sum_segments", [&](auto zero) {
      using Index = decltype(zero);
      Table<Index> table{1, rows, count, 1, static_cast<const Index*>(indices.untyped_data())};
      sum_by_parts(workers, table, static_cast<const T*>(updates.untyped_data()),
                   static_cast<T*>(result->untyped_data()), clips, subtracts);
    });
  });
}

}  // namespace

PURAX_HANDLER(purax_gather_rows, gather_rows,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("mode")
                  .Attr<int64_t>("outer")
                  .Attr<int64_t>("rows")
                  .Attr<int64_t>("count")
                  .Attr<int64_t>("width"))

PURAX_HANDLER(purax_sum_segments, sum_segments,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<bool>("subtracts")
                  .Attr<bool>("clips"))

}  // namespace purax
