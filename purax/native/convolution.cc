// The convolution that programs call: which of the kernels does it, and where its arrays lie.
#include "convolution.h"
#include "types.h"

namespace purax {
namespace {

using Numbers = ffi::Span<const int64_t>;

Steps steps(Numbers numbers) { return {numbers[0], numbers[1], {numbers[2], numbers[3], numbers[4]}}; }

// Whether the derivative by a kernel with one feature in each group can be done as it lies in memory.
bool is_by_channel(const Convolution& at) {
  if (at.batch != 1 || at.outputs != 1) return false;
  for (int64_t holes : at.lhs_dilation) {
    if (holes != 1) return false;
  }
  if (at.lhs_group == 1 && at.rhs_group == 1) return true;
  return at.lhs.space[2] == 1 && at.rhs.space[2] == 1 && at.rhs_dilation[2] == 1;
}

// A kernel as large as the result can be either; what is summed should be long and lie side by side.
bool is_wide(const Convolution& at) {
  if (at.taps() <= at.places()) return false;
  if (at.lhs.first == 1) return true;
  return at.lhs.second != 1 && at.features < 4 * at.window[2];
}

template <class T>
void convolve(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  if (is_by_channel(at)) {
    convolve_wide_by_channel(workers, at, lhs, rhs, out);
  } else if (is_pointwise(at)) {
    convolve_pointwise(workers, at, lhs, rhs, out);
  } else if (is_wide(at)) {
    convolve_wide(workers, at, lhs, rhs, out);
  } else {
    convolve_narrow(workers, at, lhs, rhs, out);
  }
}

// Whether all that a convolution reads and writes is in its arrays, and places in its windows are numbers of 63 bits.
bool are_within(const Convolution& at, int64_t outputs, const ffi::AnyBuffer& lhs, const ffi::AnyBuffer& rhs,
                const ffi::AnyBuffer& out) {
  constexpr int64_t kMost = (int64_t(1) << 31) - 1;
  for (int axis = 0; axis < kAxes; ++axis) {
    const int64_t low = at.low[axis];
    if (std::max({at.size[axis], at.window[axis], at.out_size[axis], at.stride[axis], low}) > kMost) return false;
    if (std::max(at.lhs_dilation[axis], at.rhs_dilation[axis]) > kMost || low < -kMost) return false;
    if (std::min({at.stride[axis], at.lhs_dilation[axis], at.rhs_dilation[axis]}) < 1) return false;
  }
  const auto holds = [](const ffi::AnyBuffer& x, int64_t first, int64_t second, const int64_t* size, const Steps& steps) {
    const int64_t count = int64_t(x.element_count());
    return lies_within(count, 0, {{first, steps.first}, {second, steps.second}, {size[0], steps.space[0]},
                                  {size[1], steps.space[1]}, {size[2], steps.space[2]}});
  };
  return rhs.element_type() == lhs.element_type() && out.element_type() == lhs.element_type() &&
         holds(lhs, at.all_batch, at.all_features, at.size, at.lhs) &&
         holds(rhs, outputs, at.features, at.window, at.rhs) && holds(out, at.batch, outputs, at.out_size, at.out);
}

ffi::Error call_convolution(ffi::ThreadPool pool, ffi::AnyBuffer lhs, ffi::AnyBuffer rhs, ffi::Result<ffi::AnyBuffer> out,
                            Numbers sizes, Numbers spatial, Numbers lhs_steps, Numbers rhs_steps, Numbers out_steps) {
  if (sizes.size() != 5 || spatial.size() != 7 * kAxes || lhs_steps.size() != 5 || rhs_steps.size() != 5 ||
      out_steps.size() != 5) {
    return invalid("convolution: wrong attributes");
  }
  Convolution at = {};
  int64_t batch = sizes[0], features = sizes[1], outputs = sizes[2], feature_groups = sizes[3], batch_groups = sizes[4];
  if (std::min({batch, features, outputs}) < 0 || std::min(feature_groups, batch_groups) < 1 ||
      count_of({feature_groups, batch_groups}) < 1 || batch % batch_groups || features % feature_groups ||
      outputs % (feature_groups * batch_groups)) {
    return wrong_sizes("convolution");
  }
  at.groups = feature_groups * batch_groups;
  at.all_batch = batch, at.all_features = features;
  at.batch = batch / batch_groups, at.features = features / feature_groups, at.outputs = outputs / at.groups;
  at.lhs = steps(lhs_steps), at.rhs = steps(rhs_steps), at.out = steps(out_steps);
  int64_t* lists[] = {at.size, at.window, at.out_size, at.stride, at.low, at.lhs_dilation, at.rhs_dilation};
  for (int64_t i = 0; i < 7 * kAxes; ++i) lists[i / kAxes][i % kAxes] = spatial[i];
  if (!are_within(at, outputs, lhs, rhs, *out)) return wrong_sizes("convolution");
  if (!out->element_count()) return ffi::Error::Success();
  if (!lhs.element_count() || !rhs.element_count()) {  // sums of nothing
    std::memset(out->untyped_data(), 0, out->size_bytes());
    return ffi::Error::Success();
  }
  at.lhs_group = feature_groups > 1 ? at.features * at.lhs.second : at.batch * at.lhs.first;
  at.rhs_group = at.outputs * at.rhs.first;
  at.out_group = at.outputs * at.out.second;
  Workers workers(pool);
  return for_real(lhs.element_type(), "convolution", [&](auto zero) {
    using T = decltype(zero);
    convolve(workers, at, static_cast<const T*>(lhs.untyped_data()), static_cast<const T*>(rhs.untyped_data()),
             static_cast<T*>(out->untyped_data()));
  });
}

}  // namespace

PURAX_HANDLER(purax_convolution, call_convolution,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<Numbers>("sizes")
                  .Attr<Numbers>("spatial")
                  .Attr<Numbers>("lhs_steps")
                  .Attr<Numbers>("rhs_steps")
                  .Attr<Numbers>("out_steps"))

}  // namespace purax
