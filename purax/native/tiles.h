// Tiles: the innermost loop of a product of matrices, with sums that stay in registers.
//
// They are plain code on vectors, compiled for several instruction sets; the best that the processor has is taken when
// first needed. Where it multiplies narrow numbers in groups, the elements of panels are words: pairs or quadruples of
// numbers that follow each other along the depth.
#pragma once

#include <utility>

#include "common.h"
#include "processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PURAX_INLINE inline __attribute__((always_inline))

namespace purax {

// Two bfloat16 or int16, or four int8, which the processor multiplies and adds at once.
struct BFloatPair {
  uint32_t bits;
};
struct ShortPair {
  uint32_t bits;
};
struct ByteQuad {  // of A: plus 128, without sign; of B: with sign
  uint32_t bits;
};

constexpr int kMostRows = 12;  // of a tile, for any instruction set

// C[0..rows, 0..columns] (+)= A·B for A[i, p] at a[i * a_row + p * a_depth], B[p, j] at b[p * b_depth + j].
template <class In, class Sum>
using Tile = void (*)(int64_t depth, const In* a, int64_t a_row, int64_t a_depth, const In* b, int64_t b_depth, Sum* c,
                      int64_t c_row, bool accumulate);

// The tiles of one instruction set: `of[v - 1][n]` has n rows and v vectors of `lanes` columns.
template <class In, class Sum>
struct Tiles {
  int64_t rows, lanes;
  Tile<In, Sum> of[2][kMostRows + 1];

  int64_t columns() const { return 2 * lanes; }
};

namespace tiles {

// The loop, given how one step adds the product of a[i] and a vector of B to a sum.
#define PURAX_TILE(STEP)                                                                                            \
  typedef Sum V __attribute__((vector_size(Bytes)));                                                                \
  typedef Sum Unaligned __attribute__((vector_size(Bytes), aligned(alignof(Sum)), may_alias));                      \
  constexpr int lanes = Bytes / sizeof(Sum);                                                                        \
  V sums[Rows][Vectors];                                                                                            \
  _Pragma("GCC unroll 16") for (int i = 0; i < Rows; ++i) {                                                         \
    _Pragma("GCC unroll 2") for (int v = 0; v < Vectors; ++v) sums[i][v] = V{};                                     \
  }                                                                                                                 \
  const In* rows[(Rows + 2) / 3]; /* every third: processors address one and two strides from there */              \
  _Pragma("GCC unroll 4") for (int i = 0; i < (Rows + 2) / 3; ++i) rows[i] = a + 3 * i * a_row;                     \
  for (int64_t p = 0; p < depth; ++p, b += b_depth) {                                                               \
    V row[Vectors];                                                                                                 \
    _Pragma("GCC unroll 2") for (int v = 0; v < Vectors; ++v) {                                                     \
      row[v] = *reinterpret_cast<const Unaligned*>(b + v * lanes);                                                  \
    }                                                                                                               \
    _Pragma("GCC unroll 16") for (int i = 0; i < Rows; ++i) {                                                       \
      const In factor = rows[i / 3][i % 3 * a_row];                                                                 \
      _Pragma("GCC unroll 2") for (int v = 0; v < Vectors; ++v) STEP(sums[i][v], factor, row[v]);                   \
    }                                                                                                               \
    _Pragma("GCC unroll 4") for (int i = 0; i < (Rows + 2) / 3; ++i) rows[i] += a_depth;                            \
  }                                                                                                                 \
  _Pragma("GCC unroll 16") for (int i = 0; i < Rows; ++i) {                                                         \
    _Pragma("GCC unroll 2") for (int v = 0; v < Vectors; ++v) {                                                     \
      Unaligned* to = reinterpret_cast<Unaligned*>(c + i * c_row + v * lanes);                                   \
      *to = accumulate ? V(*to + sums[i][v]) : sums[i][v];                                                          \
    }                                                                                                               \
  }

// Defines `name<In, Sum>()`, the tiles of an instruction set: its target, bytes of a vector, rows, and step.
#define PURAX_TILES(name, TARGET, BYTES, ROWS, STEP)                                                                \
  template <class In, class Sum, int Rows, int Vectors, int Bytes = BYTES>                                          \
  TARGET void name##_tile(int64_t depth, const In* a, int64_t a_row, int64_t a_depth, const In* b, int64_t b_depth,  \
                          Sum* c, int64_t c_row, bool accumulate) {                                                 \
    PURAX_TILE(STEP)                                                                                                \
  }                                                                                                                 \
  template <class In, class Sum, int... Rows>                                                                       \
  Tiles<In, Sum> name##_tiles(std::integer_sequence<int, Rows...>) {                                                \
    return {ROWS,                                                                                                   \
            BYTES / sizeof(Sum),                                                                                    \
            {{nullptr, name##_tile<In, Sum, Rows + 1, 1>...}, {nullptr, name##_tile<In, Sum, Rows + 1, 2>...}}};    \
  }                                                                                                                 \
  template <class In, class Sum>                                                                                    \
  Tiles<In, Sum> name() {                                                                                           \
    return name##_tiles<In, Sum>(std::make_integer_sequence<int, ROWS>());                                          \
  }

#define PURAX_MULTIPLY_ADD(sum, x, row) sum += (x - V{}) * row  // x - 0 is x, in every lane
#if defined(__x86_64__)
#define PURAX_AVX512 "avx512f,avx512vl,avx512dq,avx512bw,fma"
#define PURAX_TARGET(which) __attribute__((target(which)))
#define PURAX_DOT_BFLOATS(sum, x, row) \
  sum = V(_mm512_dpbf16_ps(__m512(sum), __m512bh(_mm512_set1_epi32(x.bits)), __m512bh(row)))
#define PURAX_DOT_BYTES(sum, x, row) \
  sum = V(_mm512_dpbusd_epi32(__m512i(sum), _mm512_set1_epi32(x.bits), __m512i(row)))
#define PURAX_DOT_SHORTS(sum, x, row) \
  sum = V(_mm512_dpwssd_epi32(__m512i(sum), _mm512_set1_epi32(x.bits), __m512i(row)))
#define PURAX_DOT_SHORTS_AVX2(sum, x, row) sum += V(_mm256_madd_epi16(_mm256_set1_epi32(x.bits), __m256i(row)))
#define PURAX_DOT_SHORTS_SSE2(sum, x, row) sum += V(_mm_madd_epi16(_mm_set1_epi32(x.bits), __m128i(row)))
PURAX_TILES(avx512, PURAX_TARGET(PURAX_AVX512), 64, 12, PURAX_MULTIPLY_ADD)
PURAX_TILES(avx2, PURAX_TARGET("avx2,fma"), 32, 6, PURAX_MULTIPLY_ADD)
PURAX_TILES(portable, , 16, 4, PURAX_MULTIPLY_ADD)
PURAX_TILES(avx512_bfloats, PURAX_TARGET(PURAX_AVX512 ",avx512bf16"), 64, 12, PURAX_DOT_BFLOATS)
PURAX_TILES(avx512_bytes, PURAX_TARGET(PURAX_AVX512 ",avx512vnni"), 64, 12, PURAX_DOT_BYTES)
PURAX_TILES(avx512_shorts, PURAX_TARGET(PURAX_AVX512 ",avx512vnni"), 64, 12, PURAX_DOT_SHORTS)
PURAX_TILES(avx2_shorts, PURAX_TARGET("avx2"), 32, 6, PURAX_DOT_SHORTS_AVX2)
PURAX_TILES(portable_shorts, , 16, 4, PURAX_DOT_SHORTS_SSE2)
#else
PURAX_TILES(portable, , 16, 8, PURAX_MULTIPLY_ADD)
#endif
#undef PURAX_TILE
#undef PURAX_TILES

}  // namespace tiles

// The best tiles for elements In and sums Sum. Words need a processor that has them: see `has_words`.
template <class In, class Sum = In>
const Tiles<In, Sum>& best_tiles() {
  static const Tiles<In, Sum> found = [] {
#if defined(__x86_64__)
    const Instructions own = instructions();
    if constexpr (std::is_same_v<In, BFloatPair>) {
      return tiles::avx512_bfloats<In, Sum>();
    } else if constexpr (std::is_same_v<In, ByteQuad>) {
      return tiles::avx512_bytes<In, Sum>();
    } else if constexpr (std::is_same_v<In, ShortPair>) {
      return own >= Instructions::kVnni   ? tiles::avx512_shorts<In, Sum>()
             : own >= Instructions::kAvx2 ? tiles::avx2_shorts<In, Sum>()
                                          : tiles::portable_shorts<In, Sum>();
    } else {
      if (own >= Instructions::kAvx512) return tiles::avx512<In, Sum>();
      if (own >= Instructions::kAvx2) return tiles::avx2<In, Sum>();
      return tiles::portable<In, Sum>();
    }
#else
    return tiles::portable<In, Sum>();
#endif
  }();
  return found;
}

template <class In>
bool has_words() {
#if defined(__x86_64__)
  if (std::is_same_v<In, BFloatPair>) return instructions() >= Instructions::kBFloats;
  if (std::is_same_v<In, ByteQuad>) return instructions() >= Instructions::kVnni;
  return true;
#else
  return false;
#endif
}

}  // namespace purax
