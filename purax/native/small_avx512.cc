// Small matrices on processors with AVX-512. Headers come before the pragma: what they define is shared with other files.
#include <cmath>

#include "small.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
#define PURAX_VERSION avx512
#define PURAX_BYTES 64
#include "small_kernels.h"
#pragma GCC reset_options

namespace purax {

template <class T>
const SmallKernels<T>* small_kernels_avx512() { return &avx512::kernels<T>; }

#else

namespace purax {

template <class T>
const SmallKernels<T>* small_kernels_avx512() { return nullptr; }

#endif

template const SmallKernels<float>* small_kernels_avx512();
template const SmallKernels<double>* small_kernels_avx512();

}  // namespace purax
