// Rows of a table: those that indices name, collected; and rows added to, taken from or put in the place of them.
//
// A table is (outer, rows, width), the indices are (outer, count), what is collected or combined is (outer, count,
// width). Several updates of one row are applied in their order, except that sums of many single numbers into few are
// made by a fixed number of parts, which does not depend on how many threads there are.
#include "common.h"

namespace purax {
namespace {

constexpr int64_t kAhead = 8;            // rows that are asked for before they are needed
constexpr int64_t kPrivateBytes = 4096;  // of a row range that is worth a task of its own
constexpr int64_t kStreams = 4;          // of single numbers that are summed side by side

constexpr int64_t kBlock = 256;          // updates whose rows are looked at together

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
ffi::Error gather_with(Workers& workers, const Table<Index>& table, const char* from, const char* fill, char* to,
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
  return ffi::Error::Success();
}

ffi::Error gather_rows(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::AnyBuffer indices, ffi::AnyBuffer fill,
                       ffi::Result<ffi::AnyBuffer> result, int64_t mode, int64_t outer, int64_t rows, int64_t count,
                       int64_t width) {
  Workers workers(pool);
  if (!result->element_count()) return ffi::Error::Success();
  auto run = [&](auto index) {
    using Index = decltype(index);
    Table<Index> table{outer, rows, count, width, static_cast<const Index*>(indices.untyped_data())};
    return gather_with(workers, table, static_cast<const char*>(operand.untyped_data()),
                       static_cast<const char*>(fill.untyped_data()), static_cast<char*>(result->untyped_data()),
                       Mode(mode), int64_t(fill.size_bytes()));
  };
  switch (indices.element_type()) {
    case ffi::DataType::S32: return run(int32_t());
    case ffi::DataType::S64: return run(int64_t());
    default: return invalid("gather_rows: indices must be int32 or int64");
  }
}

enum Kind { kPut, kAdd, kSubtract };

template <class T, Kind kKind>
inline void combine(T* __restrict row, const T* __restrict update, int64_t width) {
  if constexpr (kKind == kPut) {
    std::memcpy(row, update, width * sizeof(T));
  } else {
    for (int64_t j = 0; j < width; ++j) row[j] = kKind == kAdd ? row[j] + update[j] : row[j] - update[j];
  }
}

// Each task owns a range of rows, so that the updates of a row stay in their order.
template <class T, class Index, Kind kKind>
void scatter_by_rows(Workers& workers, const Table<Index>& table, const T* updates, T* to, bool clips) {
  int64_t bytes = table.width * int64_t(sizeof(T));
  int64_t parts = std::min(workers.count(), ceil_div(table.rows * bytes, kPrivateBytes));
  // Every task reads all indices, so that there should be no more of them than threads.
  parts = table.outer >= workers.count() ? 1 : std::max<int64_t>(parts, 1);
  int64_t length = ceil_div(table.rows, parts);
  workers.run(table.outer * parts, table.outer * table.count * (bytes + 8), [&](int64_t task) {
    int64_t which = task / parts, low = task % parts * length, high = std::min(table.rows, low + length);
    const Index* indices = table.indices + which * table.count;
    const T* own = updates + which * table.count * table.width;
    T* rows = to + which * table.rows * table.width;
    int64_t places[kBlock + kAhead], sources[kBlock + kAhead];
    for (int64_t start = 0; start < table.count; start += kBlock) {
      int64_t found = 0;
      for (int64_t i = start; i < std::min(table.count, start + kBlock); ++i) {  // without a branch
        int64_t index = clips ? clipped(indices[i], table.rows) : int64_t(indices[i]);
        places[found] = index;
        sources[found] = i;
        found += index >= low && index < high;
      }
      std::fill(places + found, places + found + kAhead, low);
      std::fill(sources + found, sources + found + kAhead, start);
      for (int64_t k = 0; k < found; ++k) {
        fetch(rows + places[k + kAhead] * table.width, bytes);
        fetch(own + sources[k + kAhead] * table.width, bytes);
        combine<T, kKind>(rows + places[k] * table.width, own + sources[k] * table.width, table.width);
      }
    }
  });
}

// Single numbers into few places: parts of the updates have sums of their own, four parts run side by side.
template <class T, class Index, Kind kKind>
void scatter_by_parts(Workers& workers, const Table<Index>& table, const T* updates, T* to, bool clips) {
  int64_t rows = table.rows;
  int64_t tasks = std::min<int64_t>(16, std::max<int64_t>(1, table.count / std::max<int64_t>(1 << 15, 16 * rows)));
  int64_t length = ceil_div(table.count, tasks * kStreams), pitch = rows + 1;  // the last place takes what is outside
  Scratch<T> memory(tasks * kStreams * pitch);
  workers.run(tasks, table.count * 8, [&](int64_t task) {
    T* sums = memory.get() + task * kStreams * pitch;
    std::fill(sums, sums + kStreams * pitch, T(0));
    auto place = [&](int64_t i) -> int64_t {
      Index index = table.indices[i];
      if (clips) return clipped(index, rows);
      return is_inside(index, rows) ? int64_t(index) : rows;
    };
    int64_t begin = task * kStreams * length;
    int64_t whole = std::max<int64_t>(0, std::min(length, table.count - begin - (kStreams - 1) * length));
    for (int64_t i = begin; i < begin + whole; ++i) {
      for (int64_t s = 0; s < kStreams; ++s) sums[s * pitch + place(i + s * length)] += updates[i + s * length];
    }
    for (int64_t s = 0; s < kStreams; ++s) {
      int64_t end = std::min(table.count, begin + (s + 1) * length);
      for (int64_t i = begin + s * length + whole; i < end; ++i) sums[s * pitch + place(i)] += updates[i];
    }
  });
  for (int64_t row = 0; row < rows; ++row) {
    T total = memory[row];
    for (int64_t part = 1; part < tasks * kStreams; ++part) total += memory[part * pitch + row];
    to[row] = kKind == kSubtract ? to[row] - total : to[row] + total;
  }
}

template <class T, class Index>
ffi::Error scatter_with(Workers& workers, int64_t kind, const Table<Index>& table, const void* from, void* result,
                        bool clips) {
  auto* updates = static_cast<const T*>(from);
  auto* to = static_cast<T*>(result);
  bool by_parts = table.outer == 1 && table.width == 1 && table.count >= 8 * table.rows;
  if (kind == kPut) {
    scatter_by_rows<T, Index, kPut>(workers, table, updates, to, clips);
  } else if (kind == kAdd) {
    by_parts ? scatter_by_parts<T, Index, kAdd>(workers, table, updates, to, clips)
             : scatter_by_rows<T, Index, kAdd>(workers, table, updates, to, clips);
  } else {
    by_parts ? scatter_by_parts<T, Index, kSubtract>(workers, table, updates, to, clips)
             : scatter_by_rows<T, Index, kSubtract>(workers, table, updates, to, clips);
  }
  return ffi::Error::Success();
}

// The result lies where the operand does.
ffi::Error scatter_rows(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::AnyBuffer indices, ffi::AnyBuffer updates,
                        ffi::Result<ffi::AnyBuffer> result, int64_t kind, bool clips, int64_t outer, int64_t rows,
                        int64_t count, int64_t width) {
  Workers workers(pool);
  if (!operand.element_count() || !updates.element_count()) return ffi::Error::Success();
  if (operand.untyped_data() != result->untyped_data()) {
    std::memcpy(result->untyped_data(), operand.untyped_data(), operand.size_bytes());
  }
  auto typed = [&](auto number) {
    using T = decltype(number);
    auto run = [&](auto index) {
      using Index = decltype(index);
      Table<Index> table{outer, rows, count, width, static_cast<const Index*>(indices.untyped_data())};
      return scatter_with<T>(workers, kind, table, updates.untyped_data(), result->untyped_data(), clips);
    };
    switch (indices.element_type()) {
      case ffi::DataType::S32: return run(int32_t());
      case ffi::DataType::S64: return run(int64_t());
      default: return invalid("scatter_rows: indices must be int32 or int64");
    }
  };
  switch (operand.element_type()) {
    case ffi::DataType::F32: return typed(float());
    case ffi::DataType::F64: return typed(double());
    case ffi::DataType::S32:
    case ffi::DataType::U32: return typed(uint32_t());
    case ffi::DataType::S64:
    case ffi::DataType::U64: return typed(uint64_t());
    default: return invalid("scatter_rows: a dtype without a kernel");
  }
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

PURAX_HANDLER(purax_scatter_rows, scatter_rows,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("kind")
                  .Attr<bool>("clips")
                  .Attr<int64_t>("outer")
                  .Attr<int64_t>("rows")
                  .Attr<int64_t>("count")
                  .Attr<int64_t>("width"))

}  // namespace purax
