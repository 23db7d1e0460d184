// The innermost loops of reductions, once for each set of instructions.
#include "reduce.h"
#include "processor.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace purax {

namespace plain {
constexpr int64_t kVectorBytes = 16;
#include "reduce_loops.h"
}  // namespace plain

#ifdef PURAX_DISPATCHES
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int64_t kVectorBytes = 32;
#include "reduce_loops.h"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
namespace avx512 {
constexpr int64_t kVectorBytes = 64;
#include "reduce_loops.h"
}  // namespace avx512
#pragma GCC pop_options
#endif

namespace {

template <class T>
Loops<T> choose() {
#ifdef PURAX_DISPATCHES
  if (instructions() >= Instructions::kAvx512) return avx512::loops<T>();
  if (instructions() >= Instructions::kAvx2) return avx2::loops<T>();
#endif
  return plain::loops<T>();
}

}  // namespace

template <class T>
const Loops<T>& loops_for() {
  static const Loops<T> chosen = choose<T>();
  return chosen;
}

template const Loops<float>& loops_for<float>();
template const Loops<double>& loops_for<double>();
template const Loops<int32_t>& loops_for<int32_t>();
template const Loops<int64_t>& loops_for<int64_t>();
template const Loops<uint32_t>& loops_for<uint32_t>();
template const Loops<uint64_t>& loops_for<uint64_t>();

}  // namespace purax
