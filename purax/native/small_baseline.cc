// Small matrices with the instructions that every processor of this kind has; and the choice among the versions.
#include <cmath>

#include "small.h"

#define PURAX_VERSION baseline
#define PURAX_BYTES 16
#include "small_kernels.h"

namespace purax {

template <class T>
const SmallKernels<T>* small_kernels_baseline() { return &baseline::kernels<T>; }

template <class T>
const SmallKernels<T>& small_kernels() {
  static const SmallKernels<T>& best = [&]() -> const SmallKernels<T>& {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (small_kernels_avx512<T>() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      return *small_kernels_avx512<T>();
    }
    if (small_kernels_avx2<T>() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      return *small_kernels_avx2<T>();
    }
#endif
    return *small_kernels_baseline<T>();
  }();
  return best;
}

template const SmallKernels<float>* small_kernels_baseline();
template const SmallKernels<double>* small_kernels_baseline();
template const SmallKernels<float>& small_kernels();
template const SmallKernels<double>& small_kernels();

}  // namespace purax
