// Products of matrices: C = A·B in blocks that fit the caches, by tiles of C that fit the registers.
//
// A panel is a strip of A (some rows) or of B (some columns), laid out so that a tile reads it front to back. Panels are
// filled by functors (`panels.h`), so that the operands may lie in any order, be of another type, or be made on the way
// (the windows of a convolution). Sums are formed in the same order whatever the number of threads.
//
//   gemm<float>(workers, rows, columns, depth, Strided<float>{a, row_stride, depth_stride},
//               Strided<float>{b, column_stride, depth_stride}, Plain<float>{c, row_stride});
#pragma once

#include "common.h"
#include "panels.h"
#include "tiles.h"

namespace purax {

// --- where C goes

// C in memory, rows apart by `row_stride`, columns beside each other; added to what is there, or in its place.
template <class T>
struct Plain {
  T* data;
  int64_t row_stride;
  bool accumulate = false;
};

// C handed to a functor `store(row, column, T* values, count)`: `count` values beside each other in a row,
// which it may change.
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
  constexpr int64_t kMost = 16 << 20;  // what is more is given back when less is asked for
  static thread_local Memory memory;
  if (memory.bytes[purpose] < bytes || (memory.bytes[purpose] > kMost && bytes <= kMost)) {
    std::free(memory.data[purpose]);
    memory.data[purpose] = nullptr, memory.bytes[purpose] = 0;  // as long as there is no other
    const int64_t pages = ceil_div(bytes, 4096);
    memory.data[purpose] = allocate(pages, 4096, 64);
    memory.bytes[purpose] = pages * 4096;
  }
  return memory.data[purpose];
}

constexpr int64_t kBlockDepth = 384;

// Rows of A for tiles: where they begin, and strides.
template <class In>
struct RowsOfA {
  const In* data;
  int64_t row, depth;
};

// A tile of C, of all or some of its columns: B is filled up to whole vectors, C is not.
template <class In, class Sum>
PURAX_INLINE void multiply_tile(const Tiles<In, Sum>& tiles, int64_t rows, int64_t columns, int64_t depth,
                                RowsOfA<In> a, const In* b, int64_t b_depth, Sum* c, int64_t c_row, bool accumulate) {
  const int64_t vectors = columns <= tiles.lanes ? 1 : 2, width = vectors * tiles.lanes;
  const auto tile = tiles.of[vectors - 1][rows];
  if (columns == width) return tile(depth, a.data, a.row, a.depth, b, b_depth, c, c_row, accumulate);
  alignas(64) Sum whole[kMostRows * 2 * 64 / sizeof(Sum)];
  tile(depth, a.data, a.row, a.depth, b, b_depth, whole, width, false);
  for (int64_t i = 0; i < rows; ++i) {
    Sum* to = c + i * c_row;
    for (int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + whole[i * width + j] : whole[i * width + j];
  }
}

// The height of tiles that divide `rows` rows about equally.
template <class In, class Sum>
int64_t height(const Tiles<In, Sum>& tiles, int64_t rows) {
  return std::min(tiles.rows, ceil_div(ceil_div(rows, ceil_div(rows, tiles.rows)), 4) * 4);
}

// Whether `Pack` only copies: tiles can then read what it would copy.
template <class In, class Pack>
constexpr bool kCopies = std::is_same_v<Pack, Strided<In>>;

// A block of C: rows [i0, i1) and columns [j0, j1) of those that are packed; `c` is its first element.
template <class In, class Sum, class PackA>
void multiply_block(const Tiles<In, Sum>& tiles, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t depth,
                    const PackA& pack_a, const In* packed_b, Sum* c, int64_t c_row, bool accumulate) {
  const int64_t width = tiles.columns(), step = height(tiles, i1 - i0);
  bool as_it_lies = false;
  if constexpr (kCopies<In, PackA>) {  // if it is read a few times only, unless the rows lie in the same lines of the cache
    as_it_lies = j1 - j0 <= 2 * width && pack_a.lane_stride * int64_t(sizeof(In)) % 4096 != 0;
  }
  In* panels = nullptr;
  if (!as_it_lies) panels = static_cast<In*>(kept(kPanelsOfA, (i1 - i0) * std::min(depth, kBlockDepth) * sizeof(In)));
  for (int64_t p0 = 0; p0 < depth || p0 == 0; p0 += kBlockDepth) {
    const int64_t count = std::min(kBlockDepth, depth - p0);
    const auto rows_of_a = [&](int64_t i, int64_t rows) -> RowsOfA<In> {
      if constexpr (kCopies<In, PackA>) {
        const In* from = pack_a.data + i * pack_a.lane_stride + p0 * pack_a.depth_stride;
        if (as_it_lies) return {from, pack_a.lane_stride, pack_a.depth_stride};
      }
      return {panels + (i - i0) * count, 1, rows};
    };
    for (int64_t i = i0; i < i1 && !as_it_lies; i += step) {
      const int64_t rows = std::min(step, i1 - i);
      pack_a(panels + (i - i0) * count, rows, i, rows, p0, count);
    }
    for (int64_t j = j0; j < j1; j += width) {
      const int64_t columns = std::min(width, j1 - j), b_depth = columns <= tiles.lanes ? tiles.lanes : width;
      const In* b = packed_b + j * depth + p0 * b_depth;
      for (int64_t i = i0; i < i1; i += step) {
        const int64_t rows = std::min(step, i1 - i);
        Sum* to = c + (i - i0) * c_row + (j - j0);
        multiply_tile(tiles, rows, columns, count, rows_of_a(i, rows), b, b_depth, to, c_row, accumulate || p0 > 0);
      }
    }
  }
}

// A product so small that packing A, and B if it lies well, is not worth it.
template <class T>
void multiply_small(int64_t rows, int64_t columns, int64_t depth, const Strided<T>& a, const Strided<T>& b,
                    const Plain<T>& c) {
  const Tiles<T, T>& tiles = best_tiles<T>();
  const int64_t width = tiles.columns(), step = height(tiles, rows);
  const bool as_it_lies = b.lane_stride == 1 && columns % tiles.lanes == 0;
  T* packed = as_it_lies ? nullptr : static_cast<T*>(kept(kPanelsOfB, width * depth * sizeof(T)));
  for (int64_t j = 0; j < columns; j += width) {
    const int64_t own = std::min(width, columns - j), room = own <= tiles.lanes ? tiles.lanes : width;
    const T* panel = b.data + j;
    if (!as_it_lies) {
      if (own < room) std::memset(packed, 0, room * depth * sizeof(T));
      b(packed, room, j, own, 0, depth);
      panel = packed;
    }
    for (int64_t i = 0; i < rows; i += step) {
      const RowsOfA<T> rows_of_a{a.data + i * a.lane_stride, a.lane_stride, a.depth_stride};
      multiply_tile(tiles, std::min(step, rows - i), own, depth, rows_of_a, panel, as_it_lies ? b.depth_stride : room,
                    c.data + i * c.row_stride + j, c.row_stride, c.accumulate);
    }
  }
}

// C = A·B for A of rows×depth and B of depth×columns, which are read through functors that fill panels. `pack_b` is
// called for whole columns of B, `pack_a` for parts of rows, some more than once.
template <class In, class Sum = In, class PackA, class PackB, class Destination>
void gemm(Workers workers, int64_t rows, int64_t columns, int64_t depth, const PackA& pack_a, const PackB& pack_b,
          const Destination& destination) {
  constexpr int64_t kPackedBytes = 4 << 20, kBlockColumns = 512, kBlockRows = 144;
  constexpr int64_t kSmall = 1 << 18, kWorthSharing = 1 << 20;  // products of numbers
  if (rows <= 0 || columns <= 0) return;
  if constexpr (kCopies<In, PackA> && kCopies<In, PackB> && std::is_same_v<Destination, Plain<In>>) {
    const int64_t work = rows * columns * depth;
    const bool is_low = rows <= 16 && pack_b.lane_stride == 1 && work < kWorthSharing;
    if (work <= kSmall || is_low) return multiply_small(rows, columns, depth, pack_a, pack_b, destination);
  }
  const Tiles<In, Sum>& tiles = best_tiles<In, Sum>();
  const int64_t width = tiles.columns();
  const int64_t fitting = kPackedBytes / int64_t(sizeof(In)) / std::max<int64_t>(depth, 1) / width;  // panels of B
  const int64_t group = std::min(std::max<int64_t>(fitting, 1), ceil_div(columns, width)) * width;
  const bool alone = workers.count() == 1 || rows * columns * depth < kWorthSharing;
  // Blocks of C are tasks: few enough that panels of A are not packed too often, several for each thread.
  int64_t block_rows = kBlockRows, block_columns = std::min(group, ceil_div(kBlockColumns, width) * width);
  const int64_t wanted = alone ? 1 : 3 * workers.count();
  const auto are_few = [&] { return ceil_div(rows, block_rows) * ceil_div(group, block_columns) < wanted; };
  while (block_rows > 2 * tiles.rows && are_few()) block_rows -= tiles.rows;
  while (block_columns > 2 * width && are_few()) block_columns -= width;
  In* packed = static_cast<In*>(kept(kPanelsOfB, group * depth * sizeof(In)));
  for (int64_t first = 0; first < columns; first += group) {
    const int64_t own = std::min(group, columns - first);
    const int64_t panels = ceil_div(own, width), panels_each = std::max<int64_t>(1, panels / wanted);
    const int64_t packings = ceil_div(panels, panels_each), across = ceil_div(own, block_columns);
    const int64_t blocks = ceil_div(rows, block_rows) * across;
    std::atomic<int64_t> finished{0};
    const auto task = [&](int64_t index) {
      if (index < packings) {
        struct Counted {  // blocks wait for packings that fail, too
          std::atomic<int64_t>& finished;
          ~Counted() { finished.fetch_add(1, std::memory_order_release); }
        } counted{finished};
        for (int64_t panel = index * panels_each; panel < std::min(panels, (index + 1) * panels_each); ++panel) {
          const int64_t lanes = std::min(width, own - panel * width);
          const int64_t room = lanes <= tiles.lanes ? tiles.lanes : width;
          In* to = packed + panel * width * depth;
          if (lanes < room) std::memset(static_cast<void*>(to), 0, room * depth * sizeof(In));
          pack_b(to, room, first + panel * width, lanes, 0, depth);
        }
        return;
      }
      // Tasks are begun in order, so that a block waits only for packings that are under way.
      for (int spins = 0; finished.load(std::memory_order_acquire) < packings; ++spins) {
        if (spins > 64) std::this_thread::yield();
      }
      const int64_t block = index - packings;
      const int64_t i0 = block / across * block_rows, i1 = std::min(rows, i0 + block_rows);
      const int64_t j0 = block % across * block_columns, j1 = std::min(own, j0 + block_columns);
      if constexpr (std::is_same_v<Destination, Plain<Sum>>) {
        Sum* c = destination.data + i0 * destination.row_stride + first + j0;
        multiply_block(tiles, i0, i1, j0, j1, depth, pack_a, packed, c, destination.row_stride, destination.accumulate);
      } else {
        const int64_t stride = ceil_div(j1 - j0, tiles.lanes) * tiles.lanes;
        Sum* c = static_cast<Sum*>(kept(kBlockOfC, (i1 - i0) * stride * sizeof(Sum)));
        multiply_block(tiles, i0, i1, j0, j1, depth, pack_a, packed, c, stride, false);
        for (int64_t i = i0; i < i1; ++i) destination.store(i, first + j0, c + (i - i0) * stride, j1 - j0);
      }
    };
    if (alone) {
      for (int64_t index = 0; index < packings + blocks; ++index) task(index);
    } else {
      workers.run(packings + blocks, rows * own * depth / 16, task);
    }
  }
}

}  // namespace purax
