// `dot_general`: products of matrices, one or many, of all types that XLA's own kernels are slow for.
//
// The axes have been merged to five: two of the batch, rows, columns, and the depth, which is summed over. Each operand
// has a stride for each of its own, and may be a part of an array. The result lies in order: batch, rows, columns.
#include "checks.h"
#include "gemm.h"
#include "gemv.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace purax {
namespace {

struct Sizes {
  int64_t outer, inner, rows, columns, depth;
  int64_t a_outer, a_inner, a_row, a_depth;
  int64_t b_outer, b_inner, b_column, b_depth;
  int64_t a_start, b_start;
};

// Where an operand begins that is a part of an array.
const void* begin_of(ffi::AnyBuffer& array, int64_t start) {
  const int64_t size = array.element_count() > 0 ? array.size_bytes() / array.element_count() : 0;
  return static_cast<const char*>(array.untyped_data()) + start * size;
}

// Calls `multiply(workers, offset in A, in B, in C)` for each product of the batch: many small ones side by side.
template <class Multiply>
void for_batch(Workers workers, const Sizes& s, const Multiply& multiply) {
  const int64_t count = s.outer * s.inner, work = s.rows * s.columns * std::max<int64_t>(s.depth, 1);
  if (work == 0) return;
  const auto one = [&](Workers own, int64_t i) {
    const int64_t outer = i / s.inner, inner = i % s.inner;
    multiply(own, outer * s.a_outer + inner * s.a_inner, outer * s.b_outer + inner * s.b_inner, i * s.rows * s.columns);
  };
  if (count < 2 * workers.count() && work > 1 << 20) {
    for (int64_t i = 0; i < count; ++i) one(workers, i);
    return;
  }
  const int64_t each = std::max<int64_t>(1, std::min((1 << 19) / work, count / (4 * workers.count())));
  workers.run(ceil_div(count, each), count * work / 32, [&](int64_t task) {
    for (int64_t i = task * each; i < std::min(count, (task + 1) * each); ++i) one(Workers(), i);
  });
}

template <class T>
void real(Workers workers, const Sizes& s, const T* a, const T* b, T* c) {
  const bool one_column = s.columns == 1 && (s.a_row == 1 || s.a_depth == 1);
  const bool one_row = s.rows == 1 && (s.b_column == 1 || s.b_depth == 1);
  for_batch(workers, s, [&](Workers own, int64_t at_a, int64_t at_b, int64_t at_c) {
    const T *own_a = a + at_a, *own_b = b + at_b;
    if (one_column) {
      gemv(own, s.rows, s.depth, own_a, s.a_row, s.a_depth, own_b, s.b_depth, c + at_c);
    } else if (one_row) {
      gemv(own, s.columns, s.depth, own_b, s.b_column, s.b_depth, own_a, s.a_depth, c + at_c);
    } else {
      gemm<T>(own, s.rows, s.columns, s.depth, Strided<T>{own_a, s.a_row, s.a_depth},
              Strided<T>{own_b, s.b_column, s.b_depth}, Plain<T>{c + at_c, s.columns});
    }
  });
}

template <class T>
void complex(Workers workers, const Sizes& s, const T* a, const T* b, T* c) {
  for_batch(workers, s, [&](Workers own, int64_t at_a, int64_t at_b, int64_t at_c) {
    gemm<T>(own, s.rows, 2 * s.columns, 2 * s.depth, ComplexOfA<T>{a + 2 * at_a, s.a_row, s.a_depth},
            ComplexOfB<T>{b + 2 * at_b, s.b_column, s.b_depth}, Plain<T>{c + 2 * at_c, 2 * s.columns});
  });
}

// C of integers, of any width: what is left of sums that wrap around, which is the same with and without sign.
struct Integers {
  void* data;
  int64_t bytes;  // of a number

  template <class Sum>
  void put(int64_t at, const Sum* from, int64_t count) const {
    switch (bytes) {
      case 1: return put_as<uint8_t>(at, from, count);
      case 2: return put_as<uint16_t>(at, from, count);
      case 4: return put_as<uint32_t>(at, from, count);
      default: return put_as<uint64_t>(at, from, count);
    }
  }

 private:
  template <class Out, class Sum>
  void put_as(int64_t at, const Sum* from, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) static_cast<Out*>(data)[at + k] = Out(from[k]);
  }
};

template <class Sum, class In>
void integers(Workers workers, const Sizes& s, const In* a, const In* b, Integers c) {
  for_batch(workers, s, [&](Workers own, int64_t at_a, int64_t at_b, int64_t at_c) {
    gemm<Sum>(own, s.rows, s.columns, s.depth, Strided<Sum, In>{a + at_a, s.a_row, s.a_depth},
              Strided<Sum, In>{b + at_b, s.b_column, s.b_depth},
              handed<Sum>([&, at_c](int64_t i, int64_t j, const Sum* from, int64_t count) {
                c.put(at_c + i * s.columns + j, from, count);
              }));
  });
}

template <class In>
void shorts(Workers workers, const Sizes& s, const In* a, const In* b, Integers c) {
  using Pairs = Words<ShortPair, uint16_t, In>;
  for_batch(workers, s, [&](Workers own, int64_t at_a, int64_t at_b, int64_t at_c) {
    gemm<ShortPair, uint32_t>(own, s.rows, s.columns, ceil_div(s.depth, 2),
                              Pairs{a + at_a, s.a_row, s.a_depth, s.depth},
                              Pairs{b + at_b, s.b_column, s.b_depth, s.depth},
                              handed<uint32_t>([&, at_c](int64_t i, int64_t j, const uint32_t* from, int64_t count) {
                                c.put(at_c + i * s.columns + j, from, count);
                              }));
  });
}

// The processor multiplies bytes without sign by bytes with sign: A is given plus 128, and 128·ΣB subtracted.
void bytes(Workers workers, const Sizes& s, const int8_t* a, const int8_t* b, Integers c) {
  using OfA = Words<ByteQuad, uint8_t, int8_t, 0x80808080u>;
  using OfB = Words<ByteQuad, uint8_t, int8_t>;
  const int64_t depth = ceil_div(s.depth, 4);
  const auto& tiles = best_tiles<ByteQuad, uint32_t>();
  const ByteQuad constant{0x80808080u};
  for_batch(workers, s, [&](Workers own, int64_t at_a, int64_t at_b, int64_t at_c) {
    Scratch<uint32_t> surplus(ceil_div(s.columns, tiles.columns()) * tiles.columns());
    Scratch<ByteQuad> row(depth);
    std::fill(row.get(), row.get() + depth, constant);
    const OfB pack_b{b + at_b, s.b_column, s.b_depth, s.depth};
    gemm<ByteQuad, uint32_t>(
        own, s.rows, s.columns, depth, OfA{a + at_a, s.a_row, s.a_depth, s.depth},
        [&](ByteQuad* to, int64_t width, int64_t first_lane, int64_t lanes, int64_t first, int64_t count) {
          pack_b(to, width, first_lane, lanes, first, count);
          tiles.of[width / tiles.lanes - 1][1](count, row.get(), 0, 1, to, width, surplus.get() + first_lane, width, false);
        },
        handed<uint32_t>([&, at_c](int64_t i, int64_t j, uint32_t* sums, int64_t count) {
          for (int64_t k = 0; k < count; ++k) sums[k] -= surplus[j + k];
          c.put(at_c + i * s.columns + j, sums, count);
        }));
  });
}

// To nearest, ties to even; NaN stays NaN.
inline uint16_t rounded(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const uint32_t finite = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, nan = (bits >> 16) | 0x40;
  return (bits & 0x7fffffff) > 0x7f800000 ? nan : finite;
}

void bfloats(Workers workers, const Sizes& s, const uint16_t* a, const uint16_t* b, void* c, bool is_narrow) {
  using Pairs = Words<BFloatPair, uint16_t, uint16_t>;
  for_batch(workers, s, [&](Workers own, int64_t at_a, int64_t at_b, int64_t at_c) {
    const Pairs pack_a{a + at_a, s.a_row, s.a_depth, s.depth}, pack_b{b + at_b, s.b_column, s.b_depth, s.depth};
    const int64_t depth = ceil_div(s.depth, 2);
    if (!is_narrow) {
      gemm<BFloatPair, float>(own, s.rows, s.columns, depth, pack_a, pack_b,
                              Plain<float>{static_cast<float*>(c) + at_c, s.columns});
      return;
    }
    gemm<BFloatPair, float>(own, s.rows, s.columns, depth, pack_a, pack_b,
                            handed<float>([&, at_c](int64_t i, int64_t j, const float* from, int64_t count) {
                              uint16_t* to = static_cast<uint16_t*>(c) + at_c + i * s.columns + j;
                              for (int64_t k = 0; k < count; ++k) to[k] = rounded(from[k]);
                            }));
  });
}

// --- by type

using Type = ffi::DataType;

// Sums of 32 bits, in words where the processor has them.
template <class In>
void narrow_integers(Workers workers, const Sizes& s, const In* a, const In* b, Integers c) {
  if constexpr (std::is_same_v<In, int8_t>) {
    if (has_words<ByteQuad>()) return bytes(workers, s, a, b, c);
  }
  if constexpr (!std::is_same_v<In, uint16_t>) {
    if (has_words<ShortPair>()) return shorts(workers, s, a, b, c);
  }
  integers<uint32_t>(workers, s, a, b, c);
}

template <class In>
bool to_integers(Workers workers, const Sizes& s, const In* a, const In* b, Type type, void* c) {
  switch (type) {
    case Type::S8:
    case Type::U8: return narrow_integers(workers, s, a, b, {c, 1}), true;
    case Type::S16:
    case Type::U16: return narrow_integers(workers, s, a, b, {c, 2}), true;
    case Type::S32:
    case Type::U32: return narrow_integers(workers, s, a, b, {c, 4}), true;
    default: return false;
  }
}

bool multiply(Workers workers, const Sizes& s, Type in, Type out, const void* a, const void* b, void* c) {
  const auto as = [](const void* x, auto zero) { return static_cast<const decltype(zero)*>(x); };
  const auto to = [](void* x, auto zero) { return static_cast<decltype(zero)*>(x); };
  switch (in) {
    case Type::F32:
      return out == in && (real(workers, s, as(a, 0.f), as(b, 0.f), to(c, 0.f)), true);
    case Type::F64:
      return out == in && (real(workers, s, as(a, 0.), as(b, 0.), to(c, 0.)), true);
    case Type::C64:
      return out == in && (complex(workers, s, as(a, 0.f), as(b, 0.f), to(c, 0.f)), true);
    case Type::C128:
      return out == in && (complex(workers, s, as(a, 0.), as(b, 0.), to(c, 0.)), true);
    case Type::BF16:
      if (!has_words<BFloatPair>() || (out != Type::BF16 && out != Type::F32)) return false;
      bfloats(workers, s, as(a, uint16_t()), as(b, uint16_t()), c, out == in);
      return true;
    case Type::S8:
      return to_integers(workers, s, as(a, int8_t()), as(b, int8_t()), out, c);
    case Type::U8:
      return to_integers(workers, s, as(a, uint8_t()), as(b, uint8_t()), out, c);
    case Type::S16:
      return to_integers(workers, s, as(a, int16_t()), as(b, int16_t()), out, c);
    case Type::U16:
      return to_integers(workers, s, as(a, uint16_t()), as(b, uint16_t()), out, c);
    case Type::S32:
    case Type::U32:
      return out == in && (integers<uint32_t>(workers, s, as(a, uint32_t()), as(b, uint32_t()), {c, 4}), true);
    case Type::S64:
    case Type::U64:
      return out == in && (integers<uint64_t>(workers, s, as(a, uint64_t()), as(b, uint64_t()), {c, 8}), true);
    default:
      return false;
  }
}

bool are_within(const Sizes& s, const ffi::AnyBuffer& a, const ffi::AnyBuffer& b, const ffi::AnyBuffer& c) {
  return a.element_type() == b.element_type() && has_size(c, {s.outer, s.inner, s.rows, s.columns}) &&
         lies_within(int64_t(a.element_count()), s.a_start,
                     {{s.outer, s.a_outer}, {s.inner, s.a_inner}, {s.rows, s.a_row}, {s.depth, s.a_depth}}) &&
         lies_within(int64_t(b.element_count()), s.b_start,
                     {{s.outer, s.b_outer}, {s.inner, s.b_inner}, {s.columns, s.b_column}, {s.depth, s.b_depth}});
}

ffi::Error call_product(ffi::ThreadPool pool, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> c,
                        ffi::Span<const int64_t> sizes) {
  Sizes own;
  static_assert(sizeof(own) == 15 * sizeof(int64_t));
  if (sizes.size() != 15) return invalid("a product needs 15 sizes");
  std::memcpy(static_cast<void*>(&own), sizes.begin(), sizeof(own));
  if (!are_within(own, a, b, *c)) return wrong_sizes("product");
  if (!multiply(Workers(pool), own, a.element_type(), c->element_type(), begin_of(a, own.a_start),
                begin_of(b, own.b_start), c->untyped_data())) {
    return invalid("a product of a dtype without a kernel");
  }
  return ffi::Error::Success();
}

}  // namespace

// Whether products of bfloat16 are done in hardware.
extern "C" PURAX_EXPORT int purax_multiplies_bfloats() { return has_words<BFloatPair>(); }

// Whether the processor multiplies whole tiles of bfloat16 (AMX), which XLA's kernels use and ours do not.
extern "C" PURAX_EXPORT int purax_multiplies_tiles() {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  constexpr unsigned kTilesOfBFloats = 1u << 22 | 1u << 24;  // AMX-BF16 and AMX-TILE
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTilesOfBFloats) == kTilesOfBFloats;
#else
  return 0;
#endif
}

PURAX_HANDLER(purax_product, call_product,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<ffi::Span<const int64_t>>("sizes"))

}  // namespace purax
