// Small matrices with the instructions that every processor of this kind has; and the choice among the versions.
#include <cmath>

#include "processor.h"
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
    if (small_kernels_avx512<T>() && instructions() >= Instructions::kAvx512) return *small_kernels_avx512<T>();
    if (small_kernels_avx2<T>() && instructions() >= Instructions::kAvx2) return *small_kernels_avx2<T>();
    return *small_kernels_baseline<T>();
  }();
  return best;
}

template const SmallKernels<float>* small_kernels_baseline();
template const SmallKernels<double>* small_kernels_baseline();
template const SmallKernels<float>& small_kernels();
template const SmallKernels<double>& small_kernels();

}  // namespace purax
