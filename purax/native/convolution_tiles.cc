// The innermost loops of convolutions for each set of instructions, and the choice between them.
#include "convolution.h"
#include "processor.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define PURAX_X86 1
#endif

namespace purax {

#if PURAX_X86

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
#endif
namespace avx512 {
namespace {
#define PURAX_BYTES 64
#define PURAX_ROWS 12
inline __m512 multiply_add(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512d multiply_add(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
inline __m512 spread(float x) { return _mm512_set1_ps(x); }
inline __m512d spread(double x) { return _mm512_set1_pd(x); }
#include "convolution_tiles.h"
#undef PURAX_BYTES
#undef PURAX_ROWS
}  // namespace
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
namespace {
#define PURAX_BYTES 32
#define PURAX_ROWS 6
inline __m256 multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d multiply_add(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
inline __m256 spread(float x) { return _mm256_set1_ps(x); }
inline __m256d spread(double x) { return _mm256_set1_pd(x); }
#include "convolution_tiles.h"
#undef PURAX_BYTES
#undef PURAX_ROWS
}  // namespace
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // PURAX_X86

namespace plain {
namespace {
#define PURAX_BYTES 16
#define PURAX_ROWS 6
template <class V>
inline V multiply_add(V a, V b, V c) {
  return a * b + c;
}
typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
inline Floats spread(float x) { return Floats{x, x, x, x}; }
inline Doubles spread(double x) { return Doubles{x, x}; }
#include "convolution_tiles.h"
#undef PURAX_BYTES
#undef PURAX_ROWS
}  // namespace
}  // namespace plain

namespace {

template <class T>
Loops<T> choose() {
#if PURAX_X86
  if (instructions() >= Instructions::kAvx512) return avx512::loops<T>();
  if (instructions() >= Instructions::kAvx2) return avx2::loops<T>();
#endif
  return plain::loops<T>();
}

}  // namespace

template <class T>
const Loops<T>& loops() {
  static const Loops<T> chosen = choose<T>();
  return chosen;
}

template const Loops<float>& loops<float>();
template const Loops<double>& loops<double>();

}  // namespace purax
