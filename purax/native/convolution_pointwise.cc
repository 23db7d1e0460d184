// Convolutions with a kernel of one element, where positions lie side by side in memory and features do not: a product of
// matrices for each image, whose tiles are output features by positions. Nothing is turned; some positions at a time are
// packed to a panel.
#include <vector>

#include "convolution.h"

namespace purax {
namespace {

constexpr int64_t kPanels = 8;  // of one task

bool lies_in_a_row(const int64_t (&size)[kAxes], const Steps& steps) {
  int64_t run = 1;
  for (int axis = kAxes - 1; axis >= 0; --axis) {
    if (size[axis] != 1 && steps.space[axis] != run) return false;
    run *= size[axis];
  }
  return true;
}

}  // namespace

bool is_pointwise(const Convolution& at) {
  for (int axis = 0; axis < kAxes; ++axis) {
    if (at.window[axis] != 1 || at.low[axis] || at.size[axis] != at.out_size[axis]) return false;
    if (at.out_size[axis] > 1 && (at.stride[axis] != 1 || at.lhs_dilation[axis] != 1)) return false;
  }
  return lies_in_a_row(at.size, at.lhs) && lies_in_a_row(at.out_size, at.out);
}

template <class T>
void convolve_pointwise(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  const Loops<T>& loops = purax::loops<T>();
  int64_t places = at.places(), full = 2 * loops.lanes, tallest = loops.rows;
  // The kernel with the inputs of each output in a row.
  bool packs = at.rhs.second != 1 && at.features > 1;
  Scratch<T> packed(packs ? at.groups * at.outputs * at.features : 0);
  const T* kernel = rhs;
  int64_t step = at.rhs.first, group_step = at.rhs_group;
  if (packs) {
    for (int64_t o = 0; o < at.groups * at.outputs; ++o) {
      for (int64_t i = 0; i < at.features; ++i) packed[o * at.features + i] = rhs[o * at.rhs.first + i * at.rhs.second];
    }
    kernel = packed.get(), step = at.features, group_step = at.outputs * at.features;
  }
  int64_t panels = ceil_div(places, full), matrices = at.groups * at.batch;
  int64_t together = std::clamp<int64_t>(matrices * panels / (4 * workers.count()), 1, kPanels);
  int64_t blocks = ceil_div(panels, together), cost = matrices * places * at.outputs * at.features / loops.lanes * 4;
  workers.run(matrices * blocks, cost, [&](int64_t task) {
    int64_t matrix = task / blocks, group = matrix / at.batch, n = matrix % at.batch;
    const T* image = lhs + group * at.lhs_group + n * at.lhs.first;
    T* result = out + group * at.out_group + n * at.out.first;
    Scratch<T> panel(at.features * full), spare(tallest * full);
    std::vector<const T*> rows(tallest, kernel);
    for (int64_t begin = task % blocks * together * full, last = std::min(begin + together * full, places); begin < last;
         begin += full) {
      int64_t count = std::min(full, places - begin), width = loops.padded(count);
      for (int64_t i = 0; i < at.features; ++i) {
        const T* from = image + i * at.lhs.second + begin;
        std::copy_n(from, count, panel.get() + i * width);
        std::fill_n(panel.get() + i * width + count, width - count, T(0));
      }
      Segment segment{0, at.features, 0};
      for (int64_t o = 0; o < at.outputs;) {
        int64_t height = std::min(tallest, at.outputs - o);
        for (int64_t m = 0; m < height; ++m) rows[m] = kernel + group * group_step + (o + m) * step;
        for (int64_t m = height; m < tallest; ++m) rows[m] = rows[0];
        int which = loops.at_least(height);
        bool is_whole = count == width && loops.height(which) == height;
        T* own = result + o * at.out.second + begin;
        loops.multiply_rows[which][width / loops.lanes - 1](rows.data(), tallest, &segment, 1, panel.get(),
                                                            is_whole ? own : spare.get(), is_whole ? at.out.second : width);
        for (int64_t m = 0; m < height && !is_whole; ++m) std::copy_n(spare.get() + m * width, count, own + m * at.out.second);
        o += height;
      }
    }
  });
}

template void convolve_pointwise(Workers&, const Convolution&, const float*, const float*, float*);
template void convolve_pointwise(Workers&, const Convolution&, const double*, const double*, double*);

}  // namespace purax
