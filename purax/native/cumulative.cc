// Running sums, products and extrema along an axis.
//
// Where the axis is the last, each addition waits for the one before, so a block is cut into chains that run side by
// side, and each chain then gets what came before it. Else whole vectors of what lies beside the axis are combined.
#include "types.h"

namespace purax {
namespace {

constexpr int64_t kChains = 8;
constexpr int64_t kChainLength = 256;
constexpr int64_t kLongRow = 1 << 16;  // elements from which on threads share a row

template <class T>
struct Sum {
  static T apply(T a, T b) { return a + b; }
};

template <class T>
struct Product {
  static T apply(T a, T b) { return a * b; }
};

// NaN wins, and 0 is larger than -0.
template <class T>
struct Maximum {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      T equal = __builtin_signbit(a) ? b : a;
      T larger = a > b ? a : a == b ? equal : b;
      return a != a ? a : larger;
    } else {
      return a > b ? a : b;
    }
  }
};

template <class T>
struct Minimum {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      T equal = __builtin_signbit(a) ? a : b;
      T smaller = a < b ? a : a == b ? equal : b;
      return a != a ? a : smaller;
    } else {
      return a < b ? a : b;
    }
  }
};

// y[k·direction] for k < size; `carry` is what came before, if there is something.
template <class T, class Op>
void scan_row(const T* x, T* y, int64_t size, int64_t direction, T carry, bool has_carry) {
  int64_t k = 0;
  for (; k + kChains * kChainLength <= size; k += kChains * kChainLength) {
    const T* from = x + direction * k;
    T* to = y + direction * k;
    T totals[kChains];
    for (int64_t c = 0; c < kChains; ++c) {
      int64_t at = direction * c * kChainLength;
      totals[c] = to[at] = from[at];
    }
    for (int64_t i = 1; i < kChainLength; ++i) {
      for (int64_t c = 0; c < kChains; ++c) {
        int64_t at = direction * (c * kChainLength + i);
        totals[c] = to[at] = Op::apply(totals[c], from[at]);
      }
    }
    for (int64_t c = 0; c < kChains; ++c) {
      if (has_carry) {
        T* chain = direction > 0 ? to + c * kChainLength : to - (c + 1) * kChainLength + 1;
        for (int64_t i = 0; i < kChainLength; ++i) chain[i] = Op::apply(carry, chain[i]);
        carry = Op::apply(carry, totals[c]);
      } else {
        carry = totals[c];
        has_carry = true;
      }
    }
  }
  for (; k < size; ++k) {
    carry = has_carry ? Op::apply(carry, x[direction * k]) : x[direction * k];
    has_carry = true;
    y[direction * k] = carry;
  }
}

template <class T, class Op>
T total(const T* x, int64_t size) {
  T sums[kChains];
  int64_t length = size / kChains;
  for (int64_t c = 0; c < kChains; ++c) sums[c] = x[c * length];
  for (int64_t i = 1; i < length; ++i) {
    for (int64_t c = 0; c < kChains; ++c) sums[c] = Op::apply(sums[c], x[c * length + i]);
  }
  T all = sums[0];
  for (int64_t c = 1; c < kChains; ++c) all = Op::apply(all, sums[c]);
  for (int64_t i = kChains * length; i < size; ++i) all = Op::apply(all, x[i]);
  return all;
}

template <class T, class Op>
void scan_long_row(Workers& workers, const T* x, T* y, int64_t size, int64_t direction) {
  int64_t parts = std::min<int64_t>(workers.count(), 64), length = ceil_div(size, parts);
  Scratch<T> carries(parts);
  // Part p holds the elements k from p·length on, counted in the direction of the scan.
  workers.run(parts - 1, size * 4, [&](int64_t part) {
    carries[part] = total<T, Op>(direction > 0 ? x + part * length : x - (part + 1) * length + 1, length);
  });
  for (int64_t part = 1; part < parts - 1; ++part) carries[part] = Op::apply(carries[part - 1], carries[part]);
  workers.run(parts, size * 8, [&](int64_t part) {
    int64_t begin = part * length, count = std::min(length, size - begin);
    if (count <= 0) return;
    scan_row<T, Op>(x + direction * begin, y + direction * begin, count, direction, part ? carries[part - 1] : T(0),
                    part > 0);
  });
}

template <class T, class Op>
void scan(Workers& workers, const void* from, void* to, int64_t outer, int64_t size, int64_t inner, bool reverse) {
  auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  int64_t direction = reverse ? -1 : 1;
  if (inner == 1) {
    int64_t last = direction > 0 ? 0 : size - 1;
    if (size >= kLongRow && outer < 2 * workers.count() && workers.count() > 1) {
      for (int64_t i = 0; i < outer; ++i) {
        scan_long_row<T, Op>(workers, x + i * size + last, y + i * size + last, size, direction);
      }
      return;
    }
    int64_t group = std::max<int64_t>(1, 4096 / size);
    workers.run(ceil_div(outer, group), outer * size * sizeof(T), [&](int64_t task) {
      for (int64_t i = task * group; i < std::min(outer, (task + 1) * group); ++i) {
        scan_row<T, Op>(x + i * size + last, y + i * size + last, size, direction, T(0), false);
      }
    });
    return;
  }
  int64_t width = std::min<int64_t>(inner, std::max<int64_t>(4096 / sizeof(T), ceil_div(inner, 64)));
  int64_t blocks = ceil_div(inner, width);
  workers.run(outer * blocks, outer * size * inner * sizeof(T), [&](int64_t task) {
    int64_t start = task % blocks * width, count = std::min(width, inner - start);
    int64_t base = task / blocks * size * inner + start;
    int64_t first = direction > 0 ? 0 : size - 1;
    std::memcpy(y + base + first * inner, x + base + first * inner, count * sizeof(T));
    for (int64_t k = 1; k < size; ++k) {
      const T* before = y + base + (first + direction * (k - 1)) * inner;
      const T* own = x + base + (first + direction * k) * inner;
      T* out = y + base + (first + direction * k) * inner;
      for (int64_t j = 0; j < count; ++j) out[j] = Op::apply(before[j], own[j]);
    }
  });
}

enum Kind { kSum, kProduct, kMaximum, kMinimum };

template <class T>
void scan_kind(Workers& workers, int64_t kind, const void* x, void* y, int64_t outer, int64_t size, int64_t inner,
               bool reverse) {
  switch (kind) {
    case kSum: return scan<Wrapping<T>, Sum<Wrapping<T>>>(workers, x, y, outer, size, inner, reverse);
    case kProduct: return scan<Wrapping<T>, Product<Wrapping<T>>>(workers, x, y, outer, size, inner, reverse);
    case kMaximum: return scan<T, Maximum<T>>(workers, x, y, outer, size, inner, reverse);
    default: return scan<T, Minimum<T>>(workers, x, y, outer, size, inner, reverse);
  }
}

ffi::Error cumulative(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::Result<ffi::AnyBuffer> result, int64_t kind,
                      bool reverse, int64_t outer, int64_t size, int64_t inner) {
  Workers workers(pool);
  if (!has_size(operand, {outer, size, inner}) || !is_array_of(*result, operand.element_type(), {outer, size, inner}) ||
      kind < kSum || kind > kMinimum) {
    return wrong_sizes("cumulative");
  }
  if (!operand.element_count()) return ffi::Error::Success();
  const void* x = operand.untyped_data();
  void* y = result->untyped_data();
  return for_number(operand.element_type(), "cumulative", [&](auto zero) {
    scan_kind<decltype(zero)>(workers, kind, x, y, outer, size, inner, reverse);
  });
}

}  // namespace

PURAX_HANDLER(purax_cumulative, cumulative,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("kind")
                  .Attr<bool>("reverse")
                  .Attr<int64_t>("outer")
                  .Attr<int64_t>("size")
                  .Attr<int64_t>("inner"))

}  // namespace purax
