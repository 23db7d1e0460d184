// The loops of row programs, once for each set of instructions.
#include "processor.h"
#include "row_program.h"

#pragma GCC diagnostic ignored "-Wpsabi"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")  // else a choice between two numbers is a branch
#endif

namespace purax {

namespace plain {
namespace {
constexpr int64_t kVectorBytes = 16;
#include "row_loops.h"
}  // namespace
}  // namespace plain

#ifdef PURAX_DISPATCHES
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
namespace {
constexpr int64_t kVectorBytes = 32;
#include "row_loops.h"
}  // namespace
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
namespace avx512 {
namespace {
constexpr int64_t kVectorBytes = 64;
#include "row_loops.h"
}  // namespace
}  // namespace avx512
#pragma GCC pop_options
#endif

const RowLoop* row_loops() {
#ifdef PURAX_DISPATCHES
  if (instructions() >= Instructions::kAvx512) return avx512::kLoops;
  if (instructions() >= Instructions::kAvx2) return avx2::kLoops;
#endif
  return plain::kLoops;
}

}  // namespace purax
