// Products of a matrix and a vector, which are as fast as the matrix is read.
#pragma once

#include "tiles.h"

namespace purax {
namespace vectors {

// Adds the two halves of a, and of b: what they give is interleaved, first of a, first of b, second of a …
#define PURAX_FOLD(to, a, b)                                                                                    \
  if constexpr (lanes == 2) to = PURAX_PICK(a, b, 0, 2) + PURAX_PICK(a, b, 1, 3);                               \
  if constexpr (lanes == 4) to = PURAX_PICK(a, b, 0, 4, 1, 5) + PURAX_PICK(a, b, 2, 6, 3, 7);                   \
  if constexpr (lanes == 8) {                                                                                   \
    to = PURAX_PICK(a, b, 0, 8, 1, 9, 2, 10, 3, 11) + PURAX_PICK(a, b, 4, 12, 5, 13, 6, 14, 7, 15);             \
  }                                                                                                             \
  if constexpr (lanes == 16) {                                                                                  \
    to = PURAX_PICK(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23) +                             \
         PURAX_PICK(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);                        \
  }
#define PURAX_PICK __builtin_shufflevector

// y[i] = Σ x[p] · m[i, p] for rows i < rows, whose elements are beside each other: `Count` rows at a time, which are read
// ahead side by side, with vectors of sums that are added up at the end. What is left of a row is its last vector, without
// the elements that have been added already.
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
    for (; p + lanes <= depth; p += lanes) {                                                                    \
      const V factor = *reinterpret_cast<const Unaligned*>(x + p);                                              \
      _Pragma("GCC unroll 8") for (int k = 0; k < Count; ++k) {                                                 \
        sums[k][0] += factor * *reinterpret_cast<const Unaligned*>(m + k * stride + p);                         \
      }                                                                                                         \
    }                                                                                                           \
    if (p < depth && depth >= lanes) {                                                                          \
      const V factor = (V)((Bits)last_of_x & mask);                                                             \
      _Pragma("GCC unroll 8") for (int k = 0; k < Count; ++k) {                                                 \
        const V own = *reinterpret_cast<const Unaligned*>(m + k * stride + depth - lanes);                      \
        sums[k][0] += factor * (V)((Bits)own & mask);                                                           \
      }                                                                                                         \
      p = depth;                                                                                                \
    }                                                                                                           \
    _Pragma("GCC unroll 8") for (int k = 0; k < Count; ++k) {                                                   \
      _Pragma("GCC unroll 4") for (int v = 1; v < Vectors; ++v) sums[k][0] += sums[k][v];                       \
    }                                                                                                           \
    T totals[Count];                                                                                            \
    if constexpr (Count == 1) {                                                                                 \
      totals[0] = 0;                                                                                            \
      _Pragma("GCC unroll 16") for (int lane = 0; lane < lanes; ++lane) totals[0] += sums[0][0][lane];          \
    } else {                                                                                                    \
      constexpr int group = lanes < Count ? lanes : Count; /* of rows whose sums become one vector */           \
      _Pragma("GCC unroll 8") for (int first = 0; first < Count; first += group) {                              \
        _Pragma("GCC unroll 4") for (int half = group / 2; half > 0; half /= 2) {                               \
          _Pragma("GCC unroll 4") for (int k = first; k < first + half; ++k) {                                  \
            PURAX_FOLD(sums[k][0], sums[k][0], sums[k + half][0])                                               \
          }                                                                                                     \
        }                                                                                                       \
        _Pragma("GCC unroll 8") for (int k = 0; k < group; ++k) totals[first + k] = sums[first][0][k];          \
        if constexpr (lanes > group) {                                                                          \
          _Pragma("GCC unroll 8") for (int k = 0; k < group; ++k) totals[k] += sums[0][0][k + group];           \
        }                                                                                                       \
      }                                                                                                         \
    }                                                                                                           \
    for (int k = 0; k < Count; ++k) {                                                                           \
      for (int64_t rest = p; rest < depth; ++rest) totals[k] += x[rest] * m[k * stride + rest];                 \
      y[i + k] = totals[k];                                                                                     \
    }                                                                                                           \
  }

// Defines `name_rows`, and `name_columns` for matrices whose columns are beside each other: y[i] = Σ x[p] · m[p, i], by
// adding four of the vectors m[p] at a time to stretches of y that stay in the cache.
#define PURAX_VECTORS(name, TARGET, BYTES)                                                                      \
  template <class T>                                                                                            \
  TARGET void name##_rows(int64_t rows, int64_t depth, const T* matrix, int64_t stride, const T* x, T* y) {     \
    typedef T V __attribute__((vector_size(BYTES)));                                                            \
    typedef T Unaligned __attribute__((vector_size(BYTES), aligned(alignof(T)), may_alias));                    \
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Word;                                          \
    typedef Word Bits __attribute__((vector_size(BYTES)));                                                      \
    typedef Word UnalignedBits __attribute__((vector_size(BYTES), aligned(alignof(T)), may_alias));             \
    constexpr int lanes = BYTES / sizeof(T);                                                                    \
    static_assert(lanes <= 16, "PURAX_FOLD knows up to 16");                                                    \
    Word places[2 * lanes]; /* of which `lanes` from depth % lanes on are the mask */                           \
    for (int lane = 0; lane < 2 * lanes; ++lane) places[lane] = lane < lanes ? 0 : -1;                          \
    const Bits mask = *reinterpret_cast<const UnalignedBits*>(places + depth % lanes);                          \
    V last_of_x = {};                                                                                           \
    if (depth >= lanes) last_of_x = *reinterpret_cast<const Unaligned*>(x + depth - lanes);                     \
    int64_t i = 0;                                                                                              \
    PURAX_ROWS(8, 1)                                                                                            \
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
PURAX_VECTORS(avx512, PURAX_TARGET(PURAX_AVX512), 64)
PURAX_VECTORS(avx2, PURAX_TARGET("avx2,fma"), 32)
#endif
PURAX_VECTORS(portable, , 16)
#undef PURAX_PICK
#undef PURAX_FOLD
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
