// Calls by dtype: `run` is given a zero of the type of an array's elements, and returns an error or nothing.
#pragma once

#include <string>

#include "checks.h"
#include "common.h"

namespace purax {

// What sums and products are computed in: those of integers wrap around, which only unsigned ones do in C++.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<T>>::type;

template <class T, class Run>
ffi::Error run_with(const Run& run) {
  if constexpr (std::is_void_v<decltype(run(T()))>) {
    run(T());
    return ffi::Error::Success();
  } else {
    return run(T());
  }
}

inline ffi::Error unknown(ffi::DataType dtype, const char* kernel) {
  return invalid((std::string(kernel) + ": there is no kernel for dtype " + std::to_string(int(dtype))).c_str());
}

// For float and double.
template <class Run>
ffi::Error for_real(ffi::DataType dtype, const char* kernel, const Run& run) {
  switch (dtype) {
    case ffi::DataType::F32: return run_with<float>(run);
    case ffi::DataType::F64: return run_with<double>(run);
    default: return unknown(dtype, kernel);
  }
}

// For integers of 32 and 64 bits with sign, as which indices come.
template <class Run>
ffi::Error for_index(ffi::DataType dtype, const char* kernel, const Run& run) {
  switch (dtype) {
    case ffi::DataType::S32: return run_with<int32_t>(run);
    case ffi::DataType::S64: return run_with<int64_t>(run);
    default: return unknown(dtype, kernel);
  }
}

// For all of these, and integers without sign.
template <class Run>
ffi::Error for_number(ffi::DataType dtype, const char* kernel, const Run& run) {
  switch (dtype) {
    case ffi::DataType::F32: return run_with<float>(run);
    case ffi::DataType::F64: return run_with<double>(run);
    case ffi::DataType::S32: return run_with<int32_t>(run);
    case ffi::DataType::S64: return run_with<int64_t>(run);
    case ffi::DataType::U32: return run_with<uint32_t>(run);
    case ffi::DataType::U64: return run_with<uint64_t>(run);
    default: return unknown(dtype, kernel);
  }
}

}  // namespace purax
