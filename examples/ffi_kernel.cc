// Divides rows by their root mean square: out = x / sqrt(mean(x^2) + epsilon), over the last axis.
#include <cmath>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error RmsNormImpl(float epsilon, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> out) {
  auto dimensions = x.dimensions();
  if (dimensions.size() == 0) return ffi::Error::InvalidArgument("rms_norm needs an array with at least one axis");
  const int64_t n = dimensions.back();
  for (int64_t start = 0; start + n <= static_cast<int64_t>(x.element_count()) && n > 0; start += n) {
    const float* row = x.typed_data() + start;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(row[i]) * row[i];
    const float scale = 1.0f / std::sqrt(float(sum / n) + epsilon);
    for (int64_t i = 0; i < n; ++i) out->typed_data()[start + i] = row[i] * scale;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, RmsNormImpl,
                              ffi::Ffi::Bind().Attr<float>("epsilon").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
