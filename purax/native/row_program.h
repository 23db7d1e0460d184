// Programs on the rows of matrices, run operation by operation on a few rows at a time, which stay in the cache.
#pragma once

#include "common.h"

namespace purax {

// The operations; their order is that of `OPERATIONS` in lowering/cpu/row_program.py.
enum class RowOp : int64_t {
  kLoad, kStoreBool, kCopy, kNeg, kAbs, kSqrt, kRsqrt, kExp, kTanh, kLogistic, kLog, kNot,
  kAdd, kSub, kMul, kDiv, kMax, kMin, kEq, kNe, kLt, kLe, kGt, kGe, kAnd, kOr,
  kSelect, kRowSum, kRowMax, kColumnSum, kCount,
};

// Numbers of some rows: those of the next row lie `step` further, and with `single` one stands for a whole row.
struct RowOperand {
  const float* data;
  int64_t step;
  bool single;
};

// out[row][i] = op(a[row][i], b[row][i], c[row][i]); of reductions, out is one number a row, or one row to be added to.
using RowLoop = void (*)(float* out, RowOperand a, RowOperand b, RowOperand c, int64_t rows, int64_t width);

// The loop of each operation for this processor; null for those that are not arithmetic.
const RowLoop* row_loops();

}  // namespace purax
