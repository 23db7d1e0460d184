// Products of a matrix and a vector, which are as fast as the matrix is read.
#pragma once

#include "tiles.h"

namespace purax {
namespace vectors {

// y[i] = Σ x[p] · m[i, p] for rows i < rows, whose elements are beside each other: eight rows at a time, which are read
// ahead side by side, with vectors of sums that are added up at the end.
#define PURAX_ROWS(Count, Vectors)                                                                              \
  for (; i + Count <= rows; i += Count) {                                                                       \
    V sums[Count][Vectors] = {};                                                                                \
    const T* m = matrix + i * stride;                                                                           \
    int64_t p = 0;                                                                                              \
    for (; p + Vectors * lanes <= depth; p += Vectors * lanes) {                                                \
      _Pragma("GCC unroll 4") for (int v = 0; v < Vectors; ++v) {                                               \
        const V factor = *reinterpret_cast<const Unaligned*>(x + p + v * lanes);                                \
        _Pragma("GCC unroll 8") for (int k = 0; k < Count; ++k) {                                               \
          sums[k][v] += factor * *reinterpret_cast<const Unaligned*>(m + k * stride + p + v * lanes);           \
        }                                                                                                       \
      }                                                                                                         \
    }                                                                                                           \
    for (int k = 0; k < Count; ++k) {                                                                           \
      V all = sums[k][0];                                                                                       \
      for (int v = 1; v < Vectors; ++v) all += sums[k][v];                                                      \
      T halves[lanes];                                                                                          \
      std::memcpy(halves, &all, sizeof(halves));                                                                \
      _Pragma("GCC unroll 4") for (int count = lanes / 2; count > 0; count /= 2) {                              \
        _Pragma("GCC unroll 8") for (int lane = 0; lane < count; ++lane) halves[lane] += halves[lane + count];  \
      }                                                                                                         \
      T total = halves[0];                                                                                      \
      for (int64_t rest = p; rest < depth; ++rest) total += x[rest] * m[k * stride + rest];                     \
      y[i + k] = total;                                                                                         \
    }                                                                                                           \
  }

// Defines `name_rows`, and `name_columns` for matrices whose columns are beside each other: y[i] = Σ x[p] · m[p, i], by
// adding four of the vectors m[p] at a time to stretches of y that stay in the cache.
#define PURAX_VECTORS(name, TARGET, BYTES, VECTORS)                                                             \
  template <class T>                                                                                            \
  TARGET void name##_rows(int64_t rows, int64_t depth, const T* matrix, int64_t stride, const T* x, T* y) {     \
    typedef T V __attribute__((vector_size(BYTES)));                                                            \
    typedef T Unaligned __attribute__((vector_size(BYTES), aligned(alignof(T)), may_alias));                    \
    constexpr int lanes = BYTES / sizeof(T);                                                                    \
    int64_t i = 0;                                                                                              \
    PURAX_ROWS(8, VECTORS)                                                                                      \
    PURAX_ROWS(1, 4)                                                                                            \
  }                                                                                                             \
  template <class T>                                                                                            \
  TARGET void name##_columns(int64_t rows, int64_t depth, const T* matrix, int64_t stride, const T* x, T* y) {  \
    typedef T V __attribute__((vector_size(BYTES)));                                                            \
    typedef T Unaligned __attribute__((vector_size(BYTES), aligned(alignof(T)), may_alias));                    \
    constexpr int64_t lanes = BYTES / sizeof(T), stretch = 8192 / sizeof(T);                                    \
    for (int64_t i0 = 0; i0 < rows; i0 += stretch) {                                                            \
      const int64_t count = std::min(stretch, rows - i0);                                                       \
      T* to = y + i0;                                                                                           \
      for (int64_t i = 0; i < count; ++i) to[i] = 0;                                                            \
      int64_t p = 0;                                                                                            \
      for (; p + 4 <= depth; p += 4) {                                                                          \
        const T* m = matrix + p * stride + i0;                                                                  \
        const V a = x[p] - V{}, b = x[p + 1] - V{}, c = x[p + 2] - V{}, d = x[p + 3] - V{};                     \
        int64_t i = 0;                                                                                          \
        for (; i + lanes <= count; i += lanes) {                                                                \
          auto at = [&](int64_t k) { return reinterpret_cast<const Unaligned*>(m + k * stride + i); };          \
          V sum = *reinterpret_cast<Unaligned*>(to + i);                                                        \
          sum += a * *at(0);                                                                                    \
          sum += b * *at(1);                                                                                    \
          sum += c * *at(2);                                                                                    \
          sum += d * *at(3);                                                                                    \
          *reinterpret_cast<Unaligned*>(to + i) = sum;                                                          \
        }                                                                                                       \
        for (; i < count; ++i) {                                                                                \
          for (int k = 0; k < 4; ++k) to[i] += x[p + k] * m[k * stride + i];                                    \
        }                                                                                                       \
      }                                                                                                         \
      for (; p < depth; ++p) {                                                                                  \
        for (int64_t i = 0; i < count; ++i) to[i] += x[p] * matrix[p * stride + i0 + i];                        \
      }                                                                                                         \
    }                                                                                                           \
  }

#if defined(__x86_64__)
PURAX_VECTORS(avx512, PURAX_TARGET(PURAX_AVX512), 64, 2)
PURAX_VECTORS(avx2, PURAX_TARGET("avx2,fma"), 32, 1)
#endif
PURAX_VECTORS(portable, , 16, 1)
#undef PURAX_ROWS
#undef PURAX_VECTORS

template <class T>
using Kernel = void (*)(int64_t rows, int64_t depth, const T* matrix, int64_t stride, const T* x, T* y);

template <class T>
Kernel<T> best(bool by_rows) {
#if defined(__x86_64__)
  if (instructions() >= Instructions::kAvx512) return by_rows ? avx512_rows<T> : avx512_columns<T>;
  if (instructions() >= Instructions::kAvx2) return by_rows ? avx2_rows<T> : avx2_columns<T>;
#endif
  return by_rows ? portable_rows<T> : portable_columns<T>;
}

}  // namespace vectors

// y = M·x for M of rows×depth, one of whose strides is 1. Rows are shared among threads, in the same pieces for any
// number of them.
template <class T>
void gemv(Workers workers, int64_t rows, int64_t depth, const T* matrix, int64_t row_stride, int64_t depth_stride,
          const T* x, int64_t x_stride, T* y) {
  const bool by_rows = depth_stride == 1;
  const auto kernel = vectors::best<T>(by_rows);
  Scratch<T> copy(x_stride == 1 ? 0 : depth);
  if (x_stride != 1) {
    for (int64_t p = 0; p < depth; ++p) copy[p] = x[p * x_stride];
    x = copy.get();
  }
  const int64_t least = 4096 / sizeof(T);  // columns of a piece: long enough to be read ahead
  const int64_t each = by_rows ? std::max<int64_t>(8, (1 << 17) / std::max<int64_t>(depth, 1) / 8 * 8) : least;
  workers.run(ceil_div(rows, each), rows * depth * int64_t(sizeof(T)) / 4, [&](int64_t task) {
    const int64_t first = task * each, count = std::min(each, rows - first);
    kernel(count, depth, matrix + first * row_stride, by_rows ? row_stride : depth_stride, x, y + first);
  });
}

}  // namespace purax
