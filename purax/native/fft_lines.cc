// The transforms of lines, once for each set of instructions; which one runs is decided when the library is loaded.
#include "fft.h"
#include "processor.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace purax::fourier {

namespace plain {
#include "fft_lines.h"
}  // namespace plain

#ifdef PURAX_DISPATCHES
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "fft_lines.h"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
namespace avx512 {
#include "fft_lines.h"
}  // namespace avx512
#pragma GCC pop_options
#endif

namespace {

template <class T>
Transform<T> choose() {
#ifdef PURAX_DISPATCHES
  if (instructions() >= Instructions::kAvx512) return avx512::transform<T>;
  if (instructions() >= Instructions::kAvx2) return avx2::transform<T>;
#endif
  return plain::transform<T>;
}

}  // namespace

Transform<float> best_transform(float) { return choose<float>(); }
Transform<double> best_transform(double) { return choose<double>(); }

}  // namespace purax::fourier
