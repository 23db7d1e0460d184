// The innermost loops of reductions, as they are called: chosen for the processor when the library is loaded.
#pragma once

#include "common.h"

namespace purax {

enum Reduction { kSum, kMaximum, kMinimum };

// The least and the largest number of a type.
template <class T>
struct Limits {
  static constexpr bool kHasInfinity = std::numeric_limits<T>::has_infinity;
  static constexpr T kLeast = kHasInfinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  static constexpr T kMost = kHasInfinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
};

// By `Reduction`: of `count` numbers; of `rows` rows that lie `inner` apart, into `width` numbers; and Σ x·y.
template <class T>
struct Loops {
  T (*line[3])(const T* x, int64_t count);
  void (*rows[3])(const T* x, int64_t rows, int64_t inner, int64_t width, T* out);
  T (*product)(const T* x, const T* y, int64_t count);
};

// For float, double, and integers of 32 and 64 bits.
template <class T>
const Loops<T>& loops_for();

}  // namespace purax
