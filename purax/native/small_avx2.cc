// Small matrices on processors with AVX2. Headers come before the pragma: what they define is shared with other files.
#include <cmath>

#include "small.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC target("avx2,fma")
#define PURAX_VERSION avx2
#define PURAX_BYTES 32
#include "small_kernels.h"
#pragma GCC reset_options

namespace purax {

template <class T>
const SmallKernels<T>* small_kernels_avx2() { return &avx2::kernels<T>; }

#else

namespace purax {

template <class T>
const SmallKernels<T>* small_kernels_avx2() { return nullptr; }

#endif

template const SmallKernels<float>* small_kernels_avx2();
template const SmallKernels<double>* small_kernels_avx2();

}  // namespace purax
