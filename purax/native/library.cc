// What the library says of itself: the interface that its handlers have, and its build.
#include <cstdint>

#define PURAX_EXPORT __attribute__((visibility("default")))

// To be raised, with INTERFACE in purax/xla/native.py, when operands, attributes or meanings of a kernel change.
extern "C" PURAX_EXPORT int32_t purax_interface() { return 2; }

// A name for the sources that the library was built from; it becomes part of the names of the kernels.
extern "C" PURAX_EXPORT const char* purax_build() { return PURAX_BUILD; }
