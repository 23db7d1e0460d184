// What the library says of itself: the interface that its handlers have, and the instructions that it may use.
#include <cstdint>

#define PURAX_EXPORT __attribute__((visibility("default")))

// To be raised, with INTERFACE in purax/xla/native.py, when operands, attributes or meanings of a kernel change.
extern "C" PURAX_EXPORT int32_t purax_interface() { return 1; }

// A name for the sources that the library was built from; it becomes part of the names of the kernels.
extern "C" PURAX_EXPORT const char* purax_build() { return PURAX_BUILD; }

// The best of the levels of x86-64 (see setup.py) that this processor has; 1 elsewhere.
extern "C" PURAX_EXPORT int32_t purax_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return 4;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 3;
#endif
  return 1;
}
