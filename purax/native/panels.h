// Functors that fill panels: from arrays with strides, with a change of type, in words, or of complex numbers.
//
// For lanes (rows of A, or columns of B) first_lane + i, i < lanes, and depths first + p, p < depth, a functor writes
// to[p * width + i]. What lies between `lanes` and `width` is set to zero by the caller.
#pragma once

#include "common.h"
#include "tiles.h"

namespace purax {

// to[p * width + i] = from[i * stride + p] for 32- and 64-bit elements, by squares that are turned in registers; bits of
// integers are xor-ed with `flip`.
template <class T, uint32_t flip = 0>
void turn_panel(T* to, int64_t width, const void* source, int64_t stride_bytes, int64_t lanes, int64_t depth) {
  constexpr int side = 16 / sizeof(T);
  typedef T V __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(1), may_alias));
  typedef T Single __attribute__((aligned(1), may_alias));
  const char* from = static_cast<const char*>(source);
  auto single = [&](int64_t i, int64_t p) {
    T x = *reinterpret_cast<const Single*>(from + i * stride_bytes + p * sizeof(T));
    if constexpr (flip != 0) x ^= flip;
    return x;
  };
  int64_t i = 0;
  for (; i + side <= lanes; i += side) {
    int64_t p = 0;
    for (; p + side <= depth; p += side) {
      V x[side];
      for (int k = 0; k < side; ++k) {
        x[k] = *reinterpret_cast<const Unaligned*>(from + (i + k) * stride_bytes + p * sizeof(T));
        if constexpr (flip != 0) x[k] ^= flip;
      }
      auto store = [&](int k, V v) { *reinterpret_cast<Unaligned*>(to + (p + k) * width + i) = v; };
      if constexpr (side == 4) {
        const V a = V{x[0][0], x[1][0], x[0][1], x[1][1]}, b = V{x[2][0], x[3][0], x[2][1], x[3][1]};
        const V c = V{x[0][2], x[1][2], x[0][3], x[1][3]}, d = V{x[2][2], x[3][2], x[2][3], x[3][3]};
        store(0, V{a[0], a[1], b[0], b[1]});
        store(1, V{a[2], a[3], b[2], b[3]});
        store(2, V{c[0], c[1], d[0], d[1]});
        store(3, V{c[2], c[3], d[2], d[3]});
      } else {
        store(0, V{x[0][0], x[1][0]});
        store(1, V{x[0][1], x[1][1]});
      }
    }
    for (; p < depth; ++p) {
      for (int k = 0; k < side; ++k) to[p * width + i + k] = single(i + k, p);
    }
  }
  for (; i < lanes; ++i) {
    for (int64_t p = 0; p < depth; ++p) to[p * width + i] = single(i, p);
  }
}

// From an array: element (lane, p) at data[lane * lane_stride + p * depth_stride].
template <class T, class From = T>
struct Strided {
  const From* data;
  int64_t lane_stride, depth_stride;

  void operator()(T* to, int64_t width, int64_t first_lane, int64_t lanes, int64_t first, int64_t depth) const {
    const From* from = data + first_lane * lane_stride + first * depth_stride;
    if (lane_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < lanes; ++i) to[p * width + i] = T(from[p * depth_stride + i]);
      }
      return;
    }
    if constexpr (std::is_same_v<T, From>) {
      if (depth_stride == 1) return turn_panel(to, width, from, lane_stride * sizeof(T), lanes, depth);
    }
    constexpr int64_t few = 64;  // of the depth at a time, so that lines of the panel stay in the cache
    for (int64_t p0 = 0; p0 < depth; p0 += few) {
      for (int64_t i = 0; i < lanes; ++i) {
        for (int64_t p = p0; p < std::min(depth, p0 + few); ++p) {
          to[p * width + i] = T(from[i * lane_stride + p * depth_stride]);
        }
      }
    }
  }
};

// Words of `Group` narrow numbers, Unit their unsigned type in a word, From that in the array; `flip` is xor-ed to all.
template <class Word, class Unit, class From, uint32_t flip = 0>
struct Words {
  const From* data;
  int64_t lane_stride, depth_stride, full_depth;  // in numbers; the last word is filled up with zeros
  static constexpr int group = 4 / sizeof(Unit);

  // `first` and `depth` count words.
  void operator()(Word* to, int64_t width, int64_t first_lane, int64_t lanes, int64_t first, int64_t depth) const {
    const From* from = data + first_lane * lane_stride + first * group * depth_stride;
    const int64_t whole = std::min(depth, full_depth / group - first);
    uint32_t* words = &to->bits;
    if (lane_stride == 1) {
      for (int64_t p = 0; p < whole; ++p) {
        for (int64_t i = 0; i < lanes; ++i) {
          uint32_t word = 0;
          for (int k = 0; k < group; ++k) word |= unit(from[(p * group + k) * depth_stride + i], k);
          words[p * width + i] = word ^ flip;
        }
      }
    } else if (depth_stride == 1 && sizeof(From) == sizeof(Unit)) {
      turn_panel<uint32_t, flip>(words, width, from, lane_stride * sizeof(From), lanes, whole);
    } else {
      for (int64_t p = 0; p < whole; ++p) {
        for (int64_t i = 0; i < lanes; ++i) words[p * width + i] = word(from + i * lane_stride, p, group);
      }
    }
    for (int64_t p = std::max<int64_t>(whole, 0); p < depth; ++p) {
      for (int64_t i = 0; i < lanes; ++i) {
        words[p * width + i] = word(from + i * lane_stride, p, full_depth - (first + p) * group);
      }
    }
  }

 private:
  static PURAX_INLINE uint32_t unit(From x, int k) { return uint32_t(Unit(x)) << (8 * sizeof(Unit) * k); }

  PURAX_INLINE uint32_t word(const From* from, int64_t p, int64_t count) const {
    uint32_t word = 0;
    for (int k = 0; k < group && k < count; ++k) word |= unit(from[(p * group + k) * depth_stride], k);
    return word ^ flip;
  }
};

// Complex numbers are multiplied as real ones: of A the parts are depths of their own, and of B, too, and columns:
// (a + bi)(c + di) has the parts (a, b)·((c, d), (-d, c)). Strides count complex numbers.
template <class T>
struct ComplexOfA {
  const T* data;
  int64_t lane_stride, depth_stride;

  void operator()(T* to, int64_t width, int64_t first_lane, int64_t lanes, int64_t first, int64_t depth) const {
    for (int64_t p = 0; p < depth; ++p) {
      const T* from = data + 2 * (first_lane * lane_stride + (first + p) / 2 * depth_stride) + (first + p) % 2;
      for (int64_t i = 0; i < lanes; ++i) to[p * width + i] = from[2 * i * lane_stride];
    }
  }
};

template <class T>
struct ComplexOfB {
  const T* data;
  int64_t lane_stride, depth_stride;

  void operator()(T* to, int64_t width, int64_t first_lane, int64_t lanes, int64_t first, int64_t depth) const {
    for (int64_t p = 0; p < depth; p += 2) {
      const T* from = data + first_lane * lane_stride + (first + p) * depth_stride;
      for (int64_t i = 0; i < lanes; i += 2) {
        const T real = from[i * lane_stride], imaginary = from[i * lane_stride + 1];
        to[p * width + i] = real;
        to[p * width + i + 1] = imaginary;
        to[(p + 1) * width + i] = -imaginary;
        to[(p + 1) * width + i + 1] = real;
      }
    }
  }
};

}  // namespace purax
