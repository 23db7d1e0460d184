// What handlers ask of a call before they read its arrays: that these are as large as its attributes say. A call that was
// lowered by purax always is so; one that was written or altered by others gets an error.
#pragma once

#include <initializer_list>
#include <string>

#include "common.h"

namespace purax {

// The product of sizes; -1 if one is negative, or if it is beyond all memory.
inline int64_t count_of(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  bool is_empty = false, is_large = false;
  for (int64_t size : sizes) {
    if (size < 0) return -1;
    is_empty |= size == 0;
    is_large |= __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
  }
  return is_empty ? 0 : is_large ? -1 : count;
}

// Whether an array has as many elements as the product of sizes.
template <class Array>
bool has_size(const Array& x, std::initializer_list<int64_t> sizes) {
  return int64_t(x.element_count()) == count_of(sizes);
}

// The same of an array of a dtype.
template <class Array>
bool is_array_of(const Array& x, ffi::DataType dtype, std::initializer_list<int64_t> sizes) {
  return x.element_type() == dtype && has_size(x, sizes);
}

// How many arrays of the given sizes `x` is made of: `given`, or, where that is -1, as many as there are. A call that XLA may
// cut up along its first axes cannot say how many its part has.
template <class Array>
int64_t leading_count(const Array& x, int64_t given, std::initializer_list<int64_t> sizes) {
  const int64_t each = count_of(sizes);
  return given == -1 && each > 0 ? int64_t(x.element_count()) / each : given;
}

// An axis of a view of memory: how many elements, and how far apart.
struct Axis {
  int64_t size, step;
};

// Whether all elements that a view has from `start` on are among `count`.
inline bool lies_within(int64_t count, int64_t start, std::initializer_list<Axis> axes) {
  int64_t first = start, last = start;
  for (const Axis& axis : axes) {
    if (axis.size < 0) return false;
  }
  for (const Axis& axis : axes) {
    if (axis.size == 0) return true;  // there are none
    int64_t reach;
    int64_t& end = axis.step < 0 ? first : last;
    if (__builtin_mul_overflow(axis.size - 1, axis.step, &reach) || __builtin_add_overflow(end, reach, &end)) return false;
  }
  return first >= 0 && last < count;
}

inline ffi::Error wrong_sizes(const char* kernel) {
  return invalid((std::string(kernel) + ": the arrays of a call are not what its attributes say").c_str());
}

}  // namespace purax
