// Products of matrices: C = A·B in blocks that fit the caches, by tiles of C that fit the registers.
//
// A panel is a strip of A (some rows) or of B (some columns), laid out so that a tile reads it front to back. Panels are
// filled by functors, so that the operands may lie in any order, be of another type, or be made on the way (the windows
// of a convolution). Sums are formed in the same order whatever the number of threads. Tiles are plain code on vectors,
// compiled for several instruction sets; the best that the processor has is taken when first needed.
//
//   gemm<float>(workers, rows, columns, depth, Strided<float>{a, row_stride, depth_stride},
//               Strided<float>{b, column_stride, depth_stride}, Plain<float>{c, row_stride});
#pragma once

#include <utility>

#include "common.h"

#define PURAX_INLINE inline __attribute__((always_inline))

namespace purax {

constexpr int kMostRows = 12;  // of a tile, for any instruction set

// C[0..Rows, 0..columns] (+)= A·B, for panels: A[i, p] at a[p * Rows + i], B[p, j] at b[p * columns + j].
template <class T>
using Tile = void (*)(int64_t depth, const T* a, const T* b, T* c, int64_t c_stride, bool accumulate);

// The tiles of one instruction set: `of_rows[n]` has n rows, and all have `columns` columns.
template <class T>
struct Tiles {
  int64_t rows, columns;
  Tile<T> of_rows[kMostRows + 1];
};

namespace tiles {

template <class T, int Rows, int Vectors, int Bytes>
PURAX_INLINE void multiply(int64_t depth, const T* a, const T* b, T* c, int64_t c_stride, bool accumulate) {
  typedef T V __attribute__((vector_size(Bytes)));
  typedef T Unaligned __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  constexpr int lanes = Bytes / sizeof(T);
  V sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sums[i][v] = V{};
  }
#pragma GCC unroll 2
  for (int64_t p = 0; p < depth; ++p) {
    V row[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) row[v] = *reinterpret_cast<const Unaligned*>(b + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const V factor = a[i] - V{};  // in every lane; x - 0 is x
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] += factor * row[v];
    }
    a += Rows;
    b += Vectors * lanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      Unaligned* to = reinterpret_cast<Unaligned*>(c + i * c_stride + v * lanes);
      *to = accumulate ? V(*to + sums[i][v]) : sums[i][v];
    }
  }
}

// Defines `name<T>()`, the tiles of an instruction set: the target, bytes of a vector, rows, vectors beside each other.
#define PURAX_TILES(name, TARGET, BYTES, ROWS, VECTORS)                                                              \
  template <class T, int Rows>                                                                                       \
  TARGET void name##_tile(int64_t depth, const T* a, const T* b, T* c, int64_t c_stride, bool accumulate) {          \
    multiply<T, Rows, VECTORS, BYTES>(depth, a, b, c, c_stride, accumulate);                                         \
  }                                                                                                                  \
  template <class T, int... Rows>                                                                                    \
  Tiles<T> name##_tiles(std::integer_sequence<int, Rows...>) {                                                       \
    return {ROWS, VECTORS * BYTES / sizeof(T), {nullptr, name##_tile<T, Rows + 1>...}};                              \
  }                                                                                                                  \
  template <class T>                                                                                                 \
  Tiles<T> name() {                                                                                                  \
    return name##_tiles<T>(std::make_integer_sequence<int, ROWS>());                                                 \
  }

#if defined(__x86_64__)
PURAX_TILES(avx512, __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))), 64, 12, 2)
PURAX_TILES(avx2, __attribute__((target("avx2,fma"))), 32, 6, 2)
PURAX_TILES(portable, , 16, 4, 2)
#else
PURAX_TILES(portable, , 16, 8, 2)
#endif
#undef PURAX_TILES

}  // namespace tiles

template <class T>
const Tiles<T>& best_tiles() {
  static const Tiles<T> found = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
      return tiles::avx512<T>();
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tiles::avx2<T>();
#endif
    return tiles::portable<T>();
  }();
  return found;
}

// --- panels

// Fills panels from an array: element (lane, p) at data[lane * lane_stride + p * depth_stride], where a lane is a row of
// A or a column of B. A functor of your own does the same: for lanes first_lane + i, i < lanes, and depths first + p,
// p < depth, it writes to[p * width + i]; what lies between `lanes` and `width` is set to zero by the caller.
template <class T, class From = T>
struct Strided {
  const From* data;
  int64_t lane_stride, depth_stride;

  void operator()(T* to, int64_t width, int64_t first_lane, int64_t lanes, int64_t first, int64_t depth) const {
    const From* from = data + first_lane * lane_stride + first * depth_stride;
    if (lane_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) copy(to + p * width, from + p * depth_stride, lanes);
    } else if (depth_stride == 1 && std::is_same_v<T, From>) {
      transpose(to, width, from, lanes, depth);
    } else {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < lanes; ++i) to[p * width + i] = T(from[i * lane_stride + p * depth_stride]);
      }
    }
  }

 private:
  static PURAX_INLINE void copy(T* to, const From* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
  }

  // By squares, which are turned in registers.
  void transpose(T* to, int64_t width, const From* from, int64_t lanes, int64_t depth) const {
    constexpr int side = 16 / sizeof(T);
    int64_t i = 0;
    for (; i + side <= lanes; i += side) {
      int64_t p = 0;
      for (; p + side <= depth; p += side) turn(to + p * width + i, width, from + i * lane_stride + p);
      for (; p < depth; ++p) {
        for (int k = 0; k < side; ++k) to[p * width + i + k] = T(from[(i + k) * lane_stride + p]);
      }
    }
    for (; i < lanes; ++i) {
      for (int64_t p = 0; p < depth; ++p) to[p * width + i] = T(from[i * lane_stride + p]);
    }
  }

  PURAX_INLINE void turn(T* to, int64_t width, const From* from) const {
    constexpr int side = 16 / sizeof(T);
    typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
    typedef T V __attribute__((vector_size(16)));
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> I;
    typedef I Order __attribute__((vector_size(16)));
    V x[side];
    for (int i = 0; i < side; ++i) x[i] = *reinterpret_cast<const Unaligned*>(from + i * lane_stride);
    auto store = [&](int p, V v) { *reinterpret_cast<Unaligned*>(to + p * width) = v; };
    if constexpr (side == 4) {
      const Order low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
      const V a = shuffle(x[0], x[1], low), b = shuffle(x[2], x[3], low);
      const V c = shuffle(x[0], x[1], high), d = shuffle(x[2], x[3], high);
      store(0, shuffle(a, b, first));
      store(1, shuffle(a, b, second));
      store(2, shuffle(c, d, first));
      store(3, shuffle(c, d, second));
    } else {
      store(0, shuffle(x[0], x[1], Order{0, 2}));
      store(1, shuffle(x[0], x[1], Order{1, 3}));
    }
  }

  template <class V, class Order>
  static PURAX_INLINE V shuffle(V a, V b, Order order) {
#if defined(__clang__)
    V out;
    constexpr int count = sizeof(V) / sizeof(T);
    for (int i = 0; i < count; ++i) out[i] = order[i] < count ? a[order[i]] : b[order[i] - count];
    return out;
#else
    return __builtin_shuffle(a, b, order);
#endif
  }
};

// --- where C goes

// C in memory, rows apart by `row_stride`, columns beside each other; added to what is there, or in its place.
template <class T>
struct Plain {
  T* data;
  int64_t row_stride;
  bool accumulate = false;
};

// C handed to a functor `store(row, column, const T* values, count)`: `count` values beside each other in a row.
template <class T, class Function>
struct Handed {
  Function store;
};

template <class T, class Function>
Handed<T, Function> handed(Function store) {
  return {store};
}

// --- the product

// Memory that a thread keeps from call to call, since fresh pages cost more than a small product; one for each purpose.
enum Purpose { kPanelsOfA, kPanelsOfB, kBlockOfC, kPurposes };

inline void* kept(Purpose purpose, int64_t bytes) {
  struct Memory {
    void* data[kPurposes] = {};
    int64_t bytes[kPurposes] = {};
    ~Memory() {
      for (void* each : data) std::free(each);
    }
  };
  static thread_local Memory memory;
  if (memory.bytes[purpose] < bytes) {
    std::free(memory.data[purpose]);
    memory.bytes[purpose] = ceil_div(bytes, 4096) * 4096;
    memory.data[purpose] = std::aligned_alloc(64, memory.bytes[purpose]);
  }
  return memory.data[purpose];
}

constexpr int64_t kBlockDepth = 384;

// One block of C: rows [i0, i1), columns [j0, j1) of the packed columns that begin at `first_column`.
template <class T, class PackA>
void multiply_block(const Tiles<T>& tiles, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t depth,
                    const PackA& pack_a, const T* packed_b, T* panels, T* c, int64_t c_stride, bool accumulate) {
  const int64_t step = tiles.rows, width = tiles.columns;
  alignas(64) T edge[kMostRows * 64 / sizeof(T) * 4];
  for (int64_t p0 = 0; p0 < depth || p0 == 0; p0 += kBlockDepth) {
    const int64_t count = std::min(kBlockDepth, depth - p0);
    const bool add = accumulate || p0 > 0;
    for (int64_t i = i0; i < i1; i += step) {
      const int64_t rows = std::min(step, i1 - i);
      pack_a(panels + (i - i0) * count, rows, i, rows, p0, count);
    }
    for (int64_t j = j0; j < j1; j += width) {
      const T* b = packed_b + j / width * width * depth + p0 * width;
      const int64_t columns = std::min(width, j1 - j);
      for (int64_t i = i0; i < i1; i += step) {
        const int64_t rows = std::min(step, i1 - i);
        T* to = c + (i - i0) * c_stride + (j - j0);
        if (columns == width) {
          tiles.of_rows[rows](count, panels + (i - i0) * count, b, to, c_stride, add);
          continue;
        }
        tiles.of_rows[rows](count, panels + (i - i0) * count, b, edge, width, false);
        for (int64_t r = 0; r < rows; ++r) {
          T* row = to + r * c_stride;
          for (int64_t k = 0; k < columns; ++k) row[k] = add ? row[k] + edge[r * width + k] : edge[r * width + k];
        }
      }
    }
  }
}

// C = A·B for A of rows×depth and B of depth×columns, which are read through functors that fill panels.
template <class T, class PackA, class PackB, class Destination>
void gemm(Workers workers, int64_t rows, int64_t columns, int64_t depth, const PackA& pack_a, const PackB& pack_b,
          const Destination& destination) {
  constexpr bool plain = std::is_same_v<Destination, Plain<T>>;
  constexpr int64_t kPackedBytes = 4 << 20, kBlockColumns = 512, kBlockRows = 144;
  if (rows <= 0 || columns <= 0) return;
  const Tiles<T>& tiles = best_tiles<T>();
  const int64_t width = tiles.columns;
  const int64_t fitting = kPackedBytes / int64_t(sizeof(T)) / std::max<int64_t>(depth, 1) / width;  // panels of B
  const int64_t group = std::min(std::max<int64_t>(fitting, 1), ceil_div(columns, width)) * width;
  // Blocks of C are tasks: few enough that panels of A are not packed too often, several for each thread.
  int64_t block_rows = kBlockRows, block_columns = std::min(group, ceil_div(kBlockColumns, width) * width);
  const int64_t wanted = workers.count() > 1 ? 3 * workers.count() : 1;
  const auto are_few = [&] { return ceil_div(rows, block_rows) * ceil_div(group, block_columns) < wanted; };
  while (block_rows > 2 * tiles.rows && are_few()) block_rows -= tiles.rows;
  while (block_columns > 2 * width && are_few()) block_columns -= width;
  T* packed = static_cast<T*>(kept(kPanelsOfB, group * depth * sizeof(T)));
  for (int64_t first = 0; first < columns; first += group) {
    const int64_t own = std::min(group, columns - first);
    const int64_t panels = ceil_div(own, width), panels_each = std::max<int64_t>(1, panels / (4 * workers.count()));
    const int64_t packings = ceil_div(panels, panels_each), across = ceil_div(own, block_columns);
    const int64_t blocks = ceil_div(rows, block_rows) * across;
    std::atomic<int64_t> packed_count{0};
    // Tasks are begun in order, so that a block waits only for packings that are under way.
    workers.run(packings + blocks, rows * own * depth / 64, [&](int64_t task) {
      if (task < packings) {
        for (int64_t panel = task * panels_each; panel < std::min(panels, (task + 1) * panels_each); ++panel) {
          const int64_t lanes = std::min(width, own - panel * width);
          T* to = packed + panel * width * depth;
          if (lanes < width) std::memset(to, 0, width * depth * sizeof(T));
          pack_b(to, width, first + panel * width, lanes, 0, depth);
        }
        packed_count.fetch_add(1, std::memory_order_release);
        return;
      }
      for (int spins = 0; packed_count.load(std::memory_order_acquire) < packings; ++spins) {
        if (spins > 64) std::this_thread::yield();
      }
      const int64_t block = task - packings;
      const int64_t i0 = block / across * block_rows, i1 = std::min(rows, i0 + block_rows);
      const int64_t j0 = block % across * block_columns, j1 = std::min(own, j0 + block_columns);
      T* a_panels = static_cast<T*>(kept(kPanelsOfA, (i1 - i0) * std::min(depth, kBlockDepth) * sizeof(T)));
      if constexpr (plain) {
        multiply_block<T>(tiles, i0, i1, j0, j1, depth, pack_a, packed, a_panels,
                          destination.data + i0 * destination.row_stride + first + j0, destination.row_stride,
                          destination.accumulate);
      } else {
        T* c = static_cast<T*>(kept(kBlockOfC, (i1 - i0) * (j1 - j0) * sizeof(T)));
        multiply_block<T>(tiles, i0, i1, j0, j1, depth, pack_a, packed, a_panels, c, j1 - j0, false);
        for (int64_t i = i0; i < i1; ++i) destination.store(i, first + j0, c + (i - i0) * (j1 - j0), j1 - j0);
      }
    });
  }
}

}  // namespace purax
