// FFTs of several lines side by side, one per lane of a vector: no shuffles, whatever the length.
//
// Included several times, in a namespace for each set of instructions: it must not call functions that others share.
// Stockham's form: stage by stage between two buffers, each of a prime radix or four, with results in their order.

template <class T>
struct Wide {
  typedef T type __attribute__((vector_size(kLaneBytes)));
};

template <class T>
using Vector = typename Wide<T>::type;

template <class T>
struct Pair {
  Vector<T> re, im;
};

template <class T>
inline __attribute__((always_inline)) Pair<T> times(const Pair<T>& a, T re, T im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}

template <class T, bool kTurned>
inline __attribute__((always_inline)) Pair<T> turned(const Pair<T>& a, const T* roots, int64_t t) {
  if constexpr (kTurned) return times(a, roots[2 * t], roots[2 * t + 1]);
  return a;
}

template <class T, bool kTurned>
inline __attribute__((always_inline)) void butterflies_of_two(const Pair<T>* x, Pair<T>* y, int64_t m, int64_t s,
                                                              const T* roots, int64_t t) {
  for (int64_t q = 0; q < s; ++q) {
    Pair<T> a = x[q], b = x[q + s * m];
    y[q] = {a.re + b.re, a.im + b.im};
    y[q + s] = turned<T, kTurned>({a.re - b.re, a.im - b.im}, roots, t);
  }
}

template <class T, bool kTurned>
inline __attribute__((always_inline)) void butterflies_of_four(const Pair<T>* x, Pair<T>* y, int64_t m, int64_t s,
                                                               const T* roots, int64_t t) {
  for (int64_t q = 0; q < s; ++q) {
    Pair<T> a = x[q], b = x[q + s * m], c = x[q + 2 * s * m], d = x[q + 3 * s * m];
    Pair<T> sum = {a.re + c.re, a.im + c.im}, other = {b.re + d.re, b.im + d.im};
    Pair<T> difference = {a.re - c.re, a.im - c.im}, turn = {b.im - d.im, d.re - b.re};  // -i (b - d)
    y[q] = {sum.re + other.re, sum.im + other.im};
    y[q + s] = turned<T, kTurned>({difference.re + turn.re, difference.im + turn.im}, roots, t);
    y[q + 2 * s] = turned<T, kTurned>({sum.re - other.re, sum.im - other.im}, roots, 2 * t);
    y[q + 3 * s] = turned<T, kTurned>({difference.re - turn.re, difference.im - turn.im}, roots, 3 * t);
  }
}

// An odd radix: Σₖ aₖ wʲᵏ from the sums and differences of aₖ and a₍ᵣ₋ₖ₎.
template <class T, int kRadix, bool kTurned>
inline __attribute__((always_inline)) void butterflies(const Pair<T>* x, Pair<T>* y, int64_t m, int64_t s,
                                                       const T* roots, int64_t t, int64_t size) {
  constexpr int kHalf = kRadix / 2;
  int64_t part = size / kRadix;
  for (int64_t q = 0; q < s; ++q) {
    Pair<T> first = x[q], total = first, sums[kHalf], differences[kHalf];
    for (int k = 1; k <= kHalf; ++k) {
      Pair<T> a = x[q + k * s * m], b = x[q + (kRadix - k) * s * m];
      sums[k - 1] = {a.re + b.re, a.im + b.im};
      differences[k - 1] = {a.re - b.re, a.im - b.im};
      total = {total.re + sums[k - 1].re, total.im + sums[k - 1].im};
    }
    y[q] = total;
    for (int j = 1; j <= kHalf; ++j) {
      Pair<T> even = first, odd = {first.re - first.re, first.re - first.re};
      for (int k = 1; k <= kHalf; ++k) {
        const T* root = roots + 2 * (j * k % kRadix) * part;
        Pair<T> sum = sums[k - 1], difference = differences[k - 1];
        even = {even.re + sum.re * root[0], even.im + sum.im * root[0]};
        odd = {odd.re - difference.im * root[1], odd.im + difference.re * root[1]};
      }
      y[q + j * s] = turned<T, kTurned>({even.re + odd.re, even.im + odd.im}, roots, j * t);
      y[q + (kRadix - j) * s] =
          turned<T, kTurned>({even.re - odd.re, even.im - odd.im}, roots, (kRadix - j) * t);
    }
  }
}

template <class T, bool kTurned>
inline __attribute__((always_inline)) void step(int radix, const Pair<T>* x, Pair<T>* y, int64_t m, int64_t s,
                                                const T* roots, int64_t t, int64_t size) {
  switch (radix) {
    case 2: return butterflies_of_two<T, kTurned>(x, y, m, s, roots, t);
    case 3: return butterflies<T, 3, kTurned>(x, y, m, s, roots, t, size);
    case 4: return butterflies_of_four<T, kTurned>(x, y, m, s, roots, t);
    case 5: return butterflies<T, 5, kTurned>(x, y, m, s, roots, t, size);
    case 7: return butterflies<T, 7, kTurned>(x, y, m, s, roots, t, size);
    case 11: return butterflies<T, 11, kTurned>(x, y, m, s, roots, t, size);
    default: return butterflies<T, 13, kTurned>(x, y, m, s, roots, t, size);
  }
}

// The transform of all lanes; gives the one of the two buffers that holds the result.
template <class T>
Pair<T>* transform_lanes(const Plan<T>& plan, Pair<T>* x, Pair<T>* y) {
  int64_t n = plan.size, s = 1;
  const T* roots = plan.roots.data();
  const int* radices = plan.radices.data();
  for (int64_t i = 0, count = int64_t(plan.radices.size()); i < count; ++i) {
    int radix = radices[i];
    int64_t m = n / radix;
    step<T, false>(radix, x, y, m, s, roots, 0, plan.size);
    for (int64_t p = 1; p < m; ++p) {
      step<T, true>(radix, x + s * p, y + s * radix * p, m, s, roots, p * s, plan.size);
    }
    Pair<T>* other = x;
    x = y;
    y = other;
    n = m;
    s *= radix;
  }
  return x;
}

template <class T>
inline __attribute__((always_inline)) Vector<T> vector_at(const T* from) {
  Vector<T> out;
  __builtin_memcpy(&out, from, kLaneBytes);
  return out;
}

// Real and imaginary parts of a line of pairs, and the other way round.
inline __attribute__((always_inline)) Pair<float> parted(const float* from) {
  Vector<float> a = vector_at(from), b = vector_at(from + 16);
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
}

inline __attribute__((always_inline)) Pair<double> parted(const double* from) {
  Vector<double> a = vector_at(from), b = vector_at(from + 8);
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
}

inline __attribute__((always_inline)) void join(const Pair<float>& x, float* to) {
  Vector<float> a = __builtin_shufflevector(x.re, x.im, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  Vector<float> b = __builtin_shufflevector(x.re, x.im, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  __builtin_memcpy(to, &a, kLaneBytes);
  __builtin_memcpy(to + 16, &b, kLaneBytes);
}

inline __attribute__((always_inline)) void join(const Pair<double>& x, double* to) {
  Vector<double> a = __builtin_shufflevector(x.re, x.im, 0, 8, 1, 9, 2, 10, 3, 11);
  Vector<double> b = __builtin_shufflevector(x.re, x.im, 4, 12, 5, 13, 6, 14, 7, 15);
  __builtin_memcpy(to, &a, kLaneBytes);
  __builtin_memcpy(to + 8, &b, kLaneBytes);
}

template <class T>
inline __attribute__((always_inline)) Pair<T> swapped(const Pair<T>& x, bool swap) {
  if (swap) return {x.im, x.re};
  return x;
}

// A complex number is moved as one word, in blocks that fill lines of the cache.
template <class T>
struct Word {
  typedef T type __attribute__((vector_size(2 * sizeof(T)), aligned(alignof(T)), may_alias));
};

constexpr int kBlock = 8;
constexpr int kAhead = 16;

// Asks for memory that is needed soon: the processor does not foresee steps beyond a page.
template <int kWrite, class T>
inline __attribute__((always_inline)) void fetch(const T* where) {
  __builtin_prefetch(where, kWrite);
  __builtin_prefetch(where + kLaneBytes / sizeof(T), kWrite);
}

// Real and imaginary parts change places on the way in and out of an inverse transform.
template <class T>
void load_lanes(const T* from, int64_t line, int64_t step, int64_t lanes, int64_t size, bool swap, Pair<T>* x) {
  constexpr int kLanes = kLaneBytes / sizeof(T);
  typedef typename Word<T>::type Number;
  if (line == 1 && lanes == kLanes) {
    for (int64_t j = 0; j < size; ++j) {
      fetch<0>(from + 2 * step * (j + kAhead));
      x[j] = swapped<T>(parted(from + 2 * step * j), swap);
    }
    return;
  }
  T block[kBlock][2 * kLanes] = {};
  for (int64_t start = 0; start < size; start += kBlock) {
    int64_t count = size - start < kBlock ? size - start : kBlock;
    for (int64_t l = 0; l < lanes; ++l) {
      const T* own = from + 2 * (line * l + step * start);
      for (int64_t j = 0; j < count; ++j) {
        *reinterpret_cast<Number*>(&block[j][2 * l]) = *reinterpret_cast<const Number*>(own + 2 * step * j);
      }
    }
    for (int64_t j = 0; j < count; ++j) x[start + j] = swapped<T>(parted(block[j]), swap);
  }
}

template <class T>
void store_lanes(const Pair<T>* x, int64_t size, bool swap, int64_t lanes, int64_t line, int64_t step, T* to) {
  constexpr int kLanes = kLaneBytes / sizeof(T);
  typedef typename Word<T>::type Number;
  if (line == 1 && lanes == kLanes) {
    for (int64_t j = 0; j < size; ++j) {
      fetch<1>(to + 2 * step * (j + kAhead));
      join(swapped<T>(x[j], swap), to + 2 * step * j);
    }
    return;
  }
  T block[kBlock][2 * kLanes];
  for (int64_t start = 0; start < size; start += kBlock) {
    int64_t count = size - start < kBlock ? size - start : kBlock;
    for (int64_t j = 0; j < count; ++j) join(swapped<T>(x[start + j], swap), block[j]);
    for (int64_t l = 0; l < lanes; ++l) {
      T* own = to + 2 * (line * l + step * start);
      for (int64_t j = 0; j < count; ++j) {
        *reinterpret_cast<Number*>(own + 2 * step * j) = *reinterpret_cast<const Number*>(&block[j][2 * l]);
      }
    }
  }
}

// From the transform z of pairs of reals to the first half of that of the reals, and the last element:
// X(k) = (z(k) + z̄(m-k))/2 - i/2 exp(-2πi k/2m) (z(k) - z̄(m-k)).
template <class T>
void halve(const Plan<T>& plan, Pair<T>* z) {
  int64_t m = plan.size;
  const T* roots = plan.half_roots.data();
  Pair<T> first = z[0];
  z[0] = {first.re + first.im, first.re - first.re};
  z[m] = {first.re - first.im, first.re - first.re};
  for (int64_t k = 1; k <= m / 2; ++k) {
    Pair<T> a = z[k], b = z[m - k];
    Pair<T> even = {(a.re + b.re) * T(0.5), (a.im - b.im) * T(0.5)};
    Pair<T> odd = times<T>({(a.im + b.im) * T(0.5), (b.re - a.re) * T(0.5)}, roots[2 * k], roots[2 * k + 1]);
    z[k] = {even.re + odd.re, even.im + odd.im};
    z[m - k] = {even.re - odd.re, odd.im - even.im};
  }
}

// The way back, but for a factor of two: z(k) = (X(k) + X̄(m-k)) + i exp(2πi k/2m) (X(k) - X̄(m-k)).
template <class T>
void double_up(const Plan<T>& plan, Pair<T>* x) {
  int64_t m = plan.size;
  const T* roots = plan.half_roots.data();
  Vector<T> first = x[0].re, last = x[m].re;
  x[0] = {first + last, first - last};
  for (int64_t k = 1; k <= m / 2; ++k) {
    Pair<T> a = x[k], b = x[m - k];
    Pair<T> even = {a.re + b.re, a.im - b.im};
    Pair<T> odd = times<T>({-(a.im + b.im), a.re - b.re}, roots[2 * k], -roots[2 * k + 1]);
    x[k] = {even.re + odd.re, even.im + odd.im};
    x[m - k] = {even.re - odd.re, odd.im - even.im};
  }
}

template <class T>
void transform(const Pass<T>& pass, int64_t first, T* memory) {
  constexpr int64_t kLanes = kLaneBytes / sizeof(T);
  const Plan<T>& plan = *pass.plan;
  int64_t size = plan.size, lanes = pass.lines - first < kLanes ? pass.lines - first : kLanes;
  auto* x = reinterpret_cast<Pair<T>*>(memory);
  Pair<T>* y = x + size + 1;
  const T* from = pass.from + 2 * pass.from_line * first;
  T* to = pass.to + 2 * pass.to_line * first;
  if (pass.ends == kHalfToReal) {
    load_lanes<T>(from, pass.from_line, pass.from_step, lanes, size + 1, false, x);
    double_up<T>(plan, x);
    for (int64_t j = 0; j < size; ++j) x[j] = {x[j].im, x[j].re};
  } else {
    load_lanes<T>(from, pass.from_line, pass.from_step, lanes, size, pass.inverse, x);
  }
  x = transform_lanes<T>(plan, x, y);
  if (pass.ends == kRealToHalf) {
    halve<T>(plan, x);
    ++size;
  }
  if (pass.twist) {
    const Roots<T>& roots = *pass.twist;
    auto* lane_roots = reinterpret_cast<const Pair<T>*>(pass.lanes);
    for (int64_t j = 0, t = 0; j < size; ++j, t += first) {
      t = t >= roots.size ? t - roots.size : t;
      typename Roots<T>::Precise precise[2];
      const auto* high = &roots.high.data()[2 * (t >> roots.shift)];
      const auto* low = &roots.low.data()[2 * (t & ((int64_t(1) << roots.shift) - 1))];
      precise[0] = high[0] * low[0] - high[1] * low[1];
      precise[1] = high[0] * low[1] + high[1] * low[0];
      Pair<T> turn = times<T>(lane_roots[j], T(precise[0]), T(precise[1]));
      Pair<T> a = x[j];
      x[j] = {a.re * turn.re - a.im * turn.im, a.re * turn.im + a.im * turn.re};
    }
  }
  if (pass.scale != T(1)) {
    for (int64_t j = 0; j < size; ++j) x[j] = {x[j].re * pass.scale, x[j].im * pass.scale};
  }
  bool swap = pass.inverse || pass.ends == kHalfToReal;
  store_lanes<T>(x, size, swap, lanes, pass.to_line, pass.to_step, to);
}
