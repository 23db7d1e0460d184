// The instruction sets that kernels have forms for, and the one that this processor runs best.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>

// Whether the same loops can be compiled for several sets of instructions, by pragmas.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PURAX_DISPATCHES 1
#endif

namespace purax {

// Each also means those before it.
enum class Instructions { kPortable, kAvx2, kAvx512, kVnni, kBFloats };

// What the processor has, or less if PURAX_INSTRUCTIONS in the environment says "portable", "avx2" or "avx512", by which
// every form can be tried on one machine.
inline Instructions instructions() {
  static const Instructions found = [] {
    Instructions has = Instructions::kPortable;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) has = Instructions::kAvx2;
    if (has == Instructions::kAvx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
      has = Instructions::kAvx512;
      if (__builtin_cpu_supports("avx512vnni")) {
        has = __builtin_cpu_supports("avx512bf16") ? Instructions::kBFloats : Instructions::kVnni;
      }
    }
#endif
    const char* wanted = std::getenv("PURAX_INSTRUCTIONS");
    if (wanted == nullptr) return has;
    if (std::strcmp(wanted, "portable") == 0) return Instructions::kPortable;
    if (std::strcmp(wanted, "avx2") == 0) return std::min(has, Instructions::kAvx2);
    if (std::strcmp(wanted, "avx512") == 0) return std::min(has, Instructions::kAvx512);
    return has;
  }();
  return found;
}

}  // namespace purax
