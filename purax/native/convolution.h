// What the kernels of convolutions share: the problem, the innermost loops that an instruction set offers, and copies.
//
// out[n, o, p] = Σ lhs[n, i, p · stride + q · rhs_dilation − low] · rhs[o, i, q] over i, q, in each group, where lhs has
// holes between its elements (lhs_dilation). Arrays may have their axes in any order; steps count elements.
#pragma once

#include "common.h"

namespace purax {

constexpr int kAxes = 3;  // spatial axes; those that are missing come first and have size 1

struct Steps {
  int64_t first, second, space[kAxes];  // along batch and features of images, or outputs and inputs of kernels
};

struct Convolution {
  int64_t groups, batch, features, outputs;  // sizes in one group
  int64_t lhs_group, rhs_group, out_group;   // steps from group to group
  int64_t all_batch, all_features;           // sizes of the whole operand
  int64_t size[kAxes], window[kAxes], out_size[kAxes];
  int64_t stride[kAxes], low[kAxes], lhs_dilation[kAxes], rhs_dilation[kAxes];
  Steps lhs, rhs, out;

  int64_t taps() const { return window[0] * window[1] * window[2]; }
  int64_t places() const { return out_size[0] * out_size[1] * out_size[2]; }
};

// A stretch of the sum: `length` terms, from row `offset` of a panel and `shift` elements behind the given pixels on.
struct Segment {
  int64_t offset, length, shift;
};

// A stretch of the sum for outer products.
template <class T>
struct Piece {
  const T *a, *b;
  int64_t length;
};

// The innermost loops in one instruction set; see convolution_tiles.h.
template <class T>
struct Loops {
  static constexpr int kHeights = 5;
  int lanes, rows;
  void (*multiply_rows[kHeights][2])(const T* const*, int64_t, const Segment*, int64_t, const T*, T*, int64_t);
  void (*multiply_outer[kHeights][2])(const Piece<T>*, int64_t, int64_t, int64_t, int64_t, int64_t, T*, int64_t);
  void (*transpose)(const T*, int64_t, T*, int64_t, int64_t, int64_t);
  void (*correlate[9])(const T* const*, const T*, int64_t, T*);
  void (*correlate_channels)(const T*, int64_t, const T*, int64_t, int64_t, int64_t, T*);

  int64_t height(int which) const {
    const int64_t heights[kHeights] = {1, 2, 4, rows * 2 / 3, rows};
    return heights[which];
  }
  // The lowest tile that has `count` rows or more.
  int at_least(int64_t count) const {
    int which = 0;
    while (which < kHeights - 1 && height(which) < count) ++which;
    return which;
  }
  // The highest tile that has `count` rows or fewer.
  int at_most(int64_t count) const {
    int which = kHeights - 1;
    while (which > 0 && height(which) > count) --which;
    return which;
  }
  int64_t padded(int64_t columns) const { return ceil_div(columns, lanes) * lanes; }
};

// The loops for the processor that this runs on.
template <class T>
const Loops<T>& loops();

// Copies an array to [outer …][groups][padded] with its channels last, zeros behind the channels of each group.
template <class T>
void channels_last(const Loops<T>& loops, Workers& workers, const T* from, const int64_t (&outer)[4],
                   const int64_t (&steps)[4], int64_t channels, int64_t channel_step, int64_t groups, int64_t padded,
                   T* to);

// For kernels that are smaller than the result: tiles of positions and output features.
template <class T>
void convolve_narrow(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out);

// For kernels of one element, where that is a product of matrices as they lie.
bool is_pointwise(const Convolution& at);
template <class T>
void convolve_pointwise(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out);

// For kernels that are larger, as in derivatives by the kernel: sums of outer products of pixels.
template <class T>
void convolve_wide(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out);

// The same with one batch element and one output in each group.
template <class T>
void convolve_wide_by_channel(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out);

// Where offset + p · dilation = m · step for 0 ≤ p < count and 0 ≤ m < size: first m and p, how often, and their steps.
struct Meeting {
  int64_t m = 0, p = 0, times = 0, m_step = 1, p_step = 1;
  Meeting(int64_t offset, int64_t size, int64_t step, int64_t count, int64_t dilation);
};

}  // namespace purax
