// Factorizations of many small matrices at once: what `linalg.cc` calls, in versions for several sets of instructions.
//
// A call takes as many matrices as a vector has lanes and turns them so that element (i, j) of all of them is one
// vector. What LAPACK does element by element is then done for all matrices. `small_kernels.h` is compiled once for
// each set of instructions that processors may have, and the one at hand is asked for its features when it runs.
#pragma once

#include "common.h"

namespace purax {

// Pointers to functions on `count` matrices, by rows, at most `lanes`; `space` is as many vectors as the function of
// the same name in `SmallSpace` says.
template <class T>
struct SmallKernels {
  int64_t lanes;
  // L with L Lᵀ = x; NaN where x is not positive definite.
  void (*cholesky)(const T* x, int64_t count, int64_t n, T* y, T* space);
  // Both factors of x with its rows in the order `permutation`, to which swapping rows k and pivots[k] leads.
  void (*lu)(const T* x, int64_t count, int64_t n, T* y, int32_t* pivots, int32_t* permutation, T* space);
  // Solves op(a) x = b, or x op(a) = b as op(a)ᵀ xᵀ = bᵀ; `by_rows` says that b holds rows of unknowns, the latter case.
  void (*triangular)(const T* a, const T* b, int64_t count, int64_t n, int64_t k, bool lower, bool transpose, bool unit,
                     bool by_rows, T* y, T* space);
  // q, rows×inner, and r, inner×columns; `inner` is at least the smaller of rows and columns.
  void (*qr)(const T* x, int64_t count, int64_t rows, int64_t columns, int64_t inner, T* q, T* r, T* space);
  // Eigenvectors as columns and ascending eigenvalues of symmetric matrices, of which one triangle is read.
  void (*eigh)(const T* x, int64_t count, int64_t n, bool lower, T* v, T* w, T* space);
  // Descending singular values, and, unless u is null, left vectors as the columns of u, rows×`left`, and right ones as
  // the rows of vt, `right`×columns.
  void (*svd)(const T* x, int64_t count, int64_t rows, int64_t columns, int64_t left, int64_t right, T* s, T* u, T* vt,
              T* space);
};

// The number of vectors that calls need.
struct SmallSpace {
  static int64_t square(int64_t n) { return n * n; }
  static int64_t triangular(int64_t n, int64_t k) { return n * (n + k); }
  static int64_t qr(int64_t rows, int64_t columns, int64_t inner) { return rows * (columns + inner) + 2 * columns + inner; }
  static int64_t eigh(int64_t n) { return 2 * n * n + 2 * n + 2; }
  static int64_t svd(int64_t rows, int64_t columns) {
    int64_t most = std::max(rows, columns), least = std::min(rows, columns);
    return 2 * most * least + most * most + least * least + 4 * most + 2;
  }
};

// The versions; those for processors of another kind are null.
template <class T>
const SmallKernels<T>* small_kernels_baseline();
template <class T>
const SmallKernels<T>* small_kernels_avx2();
template <class T>
const SmallKernels<T>* small_kernels_avx512();

// The best version for this processor.
template <class T>
const SmallKernels<T>& small_kernels();

}  // namespace purax
