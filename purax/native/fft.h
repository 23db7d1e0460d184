// What the parts of the FFT share: plans, and the description of one pass over the lines of an array.
#pragma once

#include <vector>

#include "common.h"

namespace purax::fourier {

constexpr int64_t kLongestLine = 8192;  // that is transformed in one go; longer ones are cut in two factors
constexpr int64_t kLaneBytes = 64;      // lines side by side fill a vector of so many bytes, in real and imaginary parts

// The transform of one length: exp(-2πi t/size) for t < size, and exp(-2πi t/(2 size)) for t ≤ size/2, as pairs.
template <class T>
struct Plan {
  int64_t size;
  std::vector<int> radices;
  std::vector<T> roots, half_roots;
};

// exp(-2πi t/size) as the product of two of about √size numbers each, in a type more precise than T.
template <class T>
struct Roots {
  using Precise = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  int64_t size;
  int shift;
  std::vector<Precise> high, low;

  void at(int64_t t, Precise* root) const {
    const Precise* a = &high[2 * (t >> shift)];
    const Precise* b = &low[2 * (t & ((int64_t(1) << shift) - 1))];
    root[0] = a[0] * b[0] - a[1] * b[1];
    root[1] = a[0] * b[1] + a[1] * b[0];
  }
};

enum Ends { kComplex, kRealToHalf, kHalfToReal };

// A pass: element j of line l lies at `from_line`·l + `from_step`·j, in pairs (real, imaginary), and so in the result.
// `kRealToHalf` takes a line of 2·size reals as size pairs and gives size + 1 pairs, `kHalfToReal` the other way round.
template <class T>
struct Pass {
  const T* from;
  T* to;
  int64_t from_line, from_step, to_line, to_step;
  int64_t lines;
  const Plan<T>* plan;
  Ends ends = kComplex;
  bool inverse = false;
  T scale = 1;
  // Element j of line l of the result is multiplied by exp(-2πi j·l/size): `twist` is null, or the roots; `lanes` has
  // those for l < lanes, in the order of the lanes' vectors.
  const Roots<T>* twist = nullptr;
  const T* lanes = nullptr;
};

// Transforms the lines from `first` on, as many as there are lanes at most. `memory` is aligned, for 2·(size + 1) pairs
// of vectors.
template <class T>
using Transform = void (*)(const Pass<T>& pass, int64_t first, T* memory);

Transform<float> best_transform(float);
Transform<double> best_transform(double);

}  // namespace purax::fourier
