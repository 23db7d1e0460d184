// Unsigned integers in the order of elements: NaN is the largest, and -0 is less than 0 unless zeros count as equal.
//
// Elements of up to 32 bits become 32-bit keys, others 64-bit ones, so that all that sorts or compares is compiled for
// these two only.
#pragma once

#include "common.h"

namespace purax {

template <class Key>
struct Order {
  // Reads the keys of x[0], x[stride], …, and writes elements back.
  void (*to_keys)(const void* x, int64_t stride, int64_t count, Key* keys);
  void (*to_keys_with_equal_zeros)(const void* x, int64_t stride, int64_t count, Key* keys);
  void (*from_keys)(const Key* keys, void* x, int64_t stride, int64_t count);
};

// The number of bytes of an element of a dtype that has an order, else 0.
int64_t width_of(ffi::DataType dtype);

inline bool has_wide_keys(ffi::DataType dtype) { return width_of(dtype) == 8; }

// The order of a dtype, with keys of the width that `has_wide_keys` tells.
template <class Key>
const Order<Key>& order_of(ffi::DataType dtype);

}  // namespace purax
