// The code of `small.h`, for the instructions that are switched on where it is included; PURAX_VERSION names them,
// and PURAX_BYTES is the length of their vectors.
//
// It calls nothing of the standard library that is not a built-in of the compiler: a function that were compiled here for
// newer processors could otherwise take the place of the same one for all.

namespace purax {
namespace PURAX_VERSION {

#define PURAX_INLINE static inline __attribute__((always_inline))

template <class T>
struct Types;
template <>
struct Types<float> {
  typedef float V __attribute__((vector_size(PURAX_BYTES)));
  typedef int32_t M __attribute__((vector_size(PURAX_BYTES)));
  typedef int32_t I;
};
template <>
struct Types<double> {
  typedef double V __attribute__((vector_size(PURAX_BYTES)));
  typedef int64_t M __attribute__((vector_size(PURAX_BYTES)));
  typedef int64_t I;
};
template <class T>
using Vector = typename Types<T>::V;
template <class T>
using Mask = typename Types<T>::M;
template <class T>
using Index = typename Types<T>::I;

// The matrices that one call takes.
template <class T>
constexpr int64_t kLanes = PURAX_BYTES / sizeof(T);

template <class T>
constexpr T kEpsilon = sizeof(T) == 4 ? T(1.1920928955078125e-07) : T(2.220446049250313e-16);
template <class T>
constexpr T kTiny = sizeof(T) == 4 ? T(1.1754943508222875e-38) : T(2.2250738585072014e-308);
template <class T>
constexpr T kLarge = sizeof(T) == 4 ? T(3.4028234663852886e+38) : T(1.7976931348623157e+308);

template <class T>
PURAX_INLINE void absolute(const Vector<T>& x, Vector<T>& y) {
  y = x < 0 ? -x : x;
}

template <class T>
PURAX_INLINE void square_root(const Vector<T>& x, Vector<T>& y) {
  T in[kLanes<T>], out[kLanes<T>];
  __builtin_memcpy(in, &x, PURAX_BYTES);
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    out[lane] = sizeof(T) == 4 ? T(__builtin_sqrtf(float(in[lane]))) : T(__builtin_sqrt(double(in[lane])));
  }
  __builtin_memcpy(&y, out, PURAX_BYTES);
}

// Whether any lane is set.
template <class T>
PURAX_INLINE bool any(const Mask<T>& mask) {
  typedef int64_t Words __attribute__((vector_size(PURAX_BYTES)));
  Words words;
  __builtin_memcpy(&words, &mask, PURAX_BYTES);
  int64_t all = 0;
  for (int i = 0; i < PURAX_BYTES / 8; ++i) all |= words[i];
  return all != 0;
}

// Element e of all matrices of `size` elements as one vector; other lanes get 0.
template <class T>
void gather(const T* x, int64_t count, int64_t size, Vector<T>* to) {
  T* y = reinterpret_cast<T*>(to);
  constexpr int64_t lanes = kLanes<T>;
  if (count == lanes) {
    for (int64_t e = 0; e < size; ++e) {
      for (int64_t lane = 0; lane < lanes; ++lane) y[e * lanes + lane] = x[lane * size + e];
    }
    return;
  }
  __builtin_memset(y, 0, size * PURAX_BYTES);
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t e = 0; e < size; ++e) y[e * lanes + lane] = x[lane * size + e];
  }
}

// The same of transposed matrices.
template <class T>
void gather_turned(const T* x, int64_t count, int64_t rows, int64_t columns, Vector<T>* to) {
  T* y = reinterpret_cast<T*>(to);
  constexpr int64_t lanes = kLanes<T>;
  if (count < lanes) __builtin_memset(y, 0, rows * columns * PURAX_BYTES);
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        y[(j * rows + i) * lanes + lane] = x[(lane * rows + i) * columns + j];
      }
    }
  }
}

template <class T>
void scatter(const Vector<T>* from, int64_t count, int64_t size, T* y) {
  const T* x = reinterpret_cast<const T*>(from);
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t e = 0; e < size; ++e) y[lane * size + e] = x[e * kLanes<T> + lane];
  }
}

template <class T>
void scatter_turned(const Vector<T>* from, int64_t count, int64_t rows, int64_t columns, T* y) {
  const T* x = reinterpret_cast<const T*>(from);
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) y[(lane * rows + i) * columns + j] = x[(j * rows + i) * kLanes<T> + lane];
    }
  }
}

template <class T>
void fill_nan(T* y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] = T(__builtin_nanf(""));
}

// --- triangular factors and systems

template <class T>
void cholesky(const T* x, int64_t count, int64_t n, T* y, T* space) {
  using V = Vector<T>;
  V* a = reinterpret_cast<V*>(space);
  gather<T>(x, count, n * n, a);
  Mask<T> failed{};
  for (int64_t k = 0; k < n; ++k) {
    V pivot = a[k * n + k], root;
    failed |= ~(pivot > 0);
    square_root<T>(pivot, root);
    a[k * n + k] = root;
    for (int64_t i = k + 1; i < n; ++i) a[i * n + k] = a[i * n + k] / root;
    for (int64_t i = k + 1; i < n; ++i) {
      V left = a[i * n + k];
      for (int64_t j = k + 1; j <= i; ++j) a[i * n + j] -= left * a[j * n + k];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = V{};
  }
  scatter<T>(a, count, n * n, y);
  if (!any<T>(failed)) return;
  for (int64_t lane = 0; lane < count; ++lane) {
    if (!failed[lane]) continue;
    for (int64_t i = 0; i < n; ++i) fill_nan(y + lane * n * n + i * n, i + 1);
  }
}

template <class T>
void lu(const T* x, int64_t count, int64_t n, T* y, int32_t* pivots, int32_t* permutation, T* space) {
  using V = Vector<T>;
  using M = Mask<T>;
  V* a = reinterpret_cast<V*>(space);
  gather<T>(x, count, n * n, a);
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t i = 0; i < n; ++i) permutation[lane * n + i] = int32_t(i);
  }
  for (int64_t k = 0; k < n; ++k) {
    V largest;
    absolute<T>(a[k * n + k], largest);
    M best = M{} + Index<T>(k);
    for (int64_t i = k + 1; i < n; ++i) {
      V own;
      absolute<T>(a[i * n + k], own);
      M is_larger = own > largest;
      largest = is_larger ? own : largest;
      best = is_larger ? M{} + Index<T>(i) : best;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      M here = best == Index<T>(i);
      if (!any<T>(here)) continue;
      for (int64_t j = 0; j < n; ++j) {
        V upper = a[k * n + j], lower = a[i * n + j];
        a[k * n + j] = here ? lower : upper;
        a[i * n + j] = here ? upper : lower;
      }
    }
    for (int64_t lane = 0; lane < count; ++lane) {
      int32_t own = int32_t(best[lane]), *order = permutation + lane * n, old = order[k];
      pivots[lane * n + k] = own;
      order[k] = order[own];
      order[own] = old;
    }
    V pivot = a[k * n + k];
    pivot = pivot == 0 ? V{} + 1 : pivot;  // as LAPACK, which goes on
    for (int64_t i = k + 1; i < n; ++i) {
      V factor = a[i * n + k] / pivot;
      a[i * n + k] = factor;
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  scatter<T>(a, count, n * n, y);
}

template <class T>
void triangular(const T* a, const T* b, int64_t count, int64_t n, int64_t k, bool lower, bool transpose, bool unit,
                bool by_rows, T* y, T* space) {
  using V = Vector<T>;
  bool is_turned = transpose != by_rows, is_lower = lower != is_turned;
  V *m = reinterpret_cast<V*>(space), *x = m + n * n;
  if (is_turned) {
    gather_turned<T>(a, count, n, n, m);
  } else {
    gather<T>(a, count, n * n, m);
  }
  if (by_rows) {
    gather_turned<T>(b, count, k, n, x);
  } else {
    gather<T>(b, count, n * k, x);
  }
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = is_lower ? step : n - 1 - step;
    if (!unit) {
      V diagonal = m[i * n + i];
      for (int64_t j = 0; j < k; ++j) x[i * k + j] /= diagonal;
    }
    int64_t begin = is_lower ? i + 1 : 0, end = is_lower ? n : i;
    for (int64_t r = begin; r < end; ++r) {
      V factor = m[r * n + i];
      for (int64_t j = 0; j < k; ++j) x[r * k + j] -= factor * x[i * k + j];
    }
  }
  if (by_rows) {
    scatter_turned<T>(x, count, k, n, y);
  } else {
    scatter<T>(x, count, n * k, y);
  }
}

// --- reflections

// Makes R of `a`, rows×columns, with Householder vectors below its diagonal and their factors in `taus`, as LAPACK's
// geqrf does; `work` is one vector for each column.
template <class T>
void reflect(Vector<T>* a, int64_t rows, int64_t columns, Vector<T>* taus, Vector<T>* work) {
  using V = Vector<T>;
  int64_t steps = rows < columns ? rows : columns;
  for (int64_t k = 0; k < steps; ++k) {
    V scale{};
    for (int64_t i = k + 1; i < rows; ++i) {
      V own;
      absolute<T>(a[i * columns + k], own);
      scale = own > scale ? own : scale;
    }
    V alpha = a[k * columns + k], size;
    absolute<T>(alpha, size);
    Mask<T> is_zero = scale < kTiny<T>;  // no reflection
    scale = size > scale ? size : scale;
    scale = is_zero ? V{} + 1 : scale;
    V up = 1 / scale, sum = alpha * up;  // squares of numbers up to 1 do not overflow
    sum = sum * sum;
    for (int64_t i = k + 1; i < rows; ++i) {
      V own = a[i * columns + k] * up;
      sum += own * own;
    }
    V norm;
    square_root<T>(sum, norm);
    norm = norm * scale;
    V beta = alpha < 0 ? norm : -norm;
    V tau = (beta - alpha) / beta, factor = 1 / (alpha - beta);
    tau = is_zero ? V{} : tau;
    factor = is_zero ? V{} : factor;
    beta = is_zero ? alpha : beta;
    taus[k] = tau;
    a[k * columns + k] = beta;
    for (int64_t i = k + 1; i < rows; ++i) a[i * columns + k] *= factor;
    if (k + 1 == columns) break;
    for (int64_t j = k + 1; j < columns; ++j) work[j] = a[k * columns + j];
    for (int64_t i = k + 1; i < rows; ++i) {
      V own = a[i * columns + k];
      for (int64_t j = k + 1; j < columns; ++j) work[j] += own * a[i * columns + j];
    }
    for (int64_t j = k + 1; j < columns; ++j) {
      work[j] *= tau;
      a[k * columns + j] -= work[j];
    }
    for (int64_t i = k + 1; i < rows; ++i) {
      V own = a[i * columns + k];
      for (int64_t j = k + 1; j < columns; ++j) a[i * columns + j] -= own * work[j];
    }
  }
}

// The first `inner` columns of the product of reflections in `a`, rows×columns, into q, rows×inner.
template <class T>
void reflections_product(const Vector<T>* a, int64_t rows, int64_t columns, const Vector<T>* taus, int64_t inner,
                         Vector<T>* q, Vector<T>* work) {
  using V = Vector<T>;
  int64_t steps = rows < columns ? rows : columns;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < inner; ++j) q[i * inner + j] = V{} + (i == j ? T(1) : T(0));
  }
  for (int64_t k = steps; k-- > 0;) {  // only rows and columns from k on differ from the identity so far
    V tau = taus[k];
    for (int64_t j = k; j < inner; ++j) work[j] = q[k * inner + j];
    for (int64_t i = k + 1; i < rows; ++i) {
      V own = a[i * columns + k];
      for (int64_t j = k; j < inner; ++j) work[j] += own * q[i * inner + j];
    }
    for (int64_t j = k; j < inner; ++j) {
      work[j] *= tau;
      q[k * inner + j] -= work[j];
    }
    for (int64_t i = k + 1; i < rows; ++i) {
      V own = a[i * columns + k];
      for (int64_t j = k; j < inner; ++j) q[i * inner + j] -= own * work[j];
    }
  }
}

template <class T>
void qr(const T* x, int64_t count, int64_t rows, int64_t columns, int64_t inner, T* q, T* r, T* space) {
  using V = Vector<T>;
  V *a = reinterpret_cast<V*>(space), *basis = a + rows * columns, *taus = basis + rows * inner;
  V* work = taus + columns;
  gather<T>(x, count, rows * columns, a);
  reflect<T>(a, rows, columns, taus, work);
  reflections_product<T>(a, rows, columns, taus, inner, basis, work);
  for (int64_t i = 1; i < inner; ++i) {
    for (int64_t j = 0; j < (i < columns ? i : columns); ++j) a[i * columns + j] = V{};
  }
  scatter<T>(basis, count, rows * inner, q);
  for (int64_t lane = 0; lane < count; ++lane) {
    const T* from = reinterpret_cast<const T*>(a) + lane;
    for (int64_t e = 0; e < inner * columns; ++e) r[lane * inner * columns + e] = from[e * kLanes<T>];
  }
}

// --- Jacobi's methods

constexpr int kSweeps = 40;  // at most; a matrix that needs more gets NaN, but none is known

// The pair `index` of the round `round` of a tournament of n, or n + 1 if that is even: all pairs meet once in n - 1
// rounds, and those of a round have no member in common. Returns false where a member has nobody to meet.
PURAX_INLINE bool pair_of(int64_t n, int64_t round, int64_t index, int64_t& p, int64_t& q) {
  int64_t players = n + (n & 1), around = players - 1;
  int64_t first = index == 0 ? players - 1 : (round + index) % around;
  int64_t second = index == 0 ? round : (round + around - index) % around;
  p = first < second ? first : second;
  q = first < second ? second : first;
  return q < n;
}

// Multiplies matrices of `size` elements by powers of two that bring their largest magnitudes to about 1; the inverses
// of these are `back`. Matrices with NaN or ∞ are set to 0, and marked in `bad`.
template <class T>
void normalize(Vector<T>* a, int64_t size, Vector<T>& back, Mask<T>& bad) {
  using V = Vector<T>;
  V largest{}, scale;
  bad = Mask<T>{};
  for (int64_t e = 0; e < size; ++e) {
    V own;
    absolute<T>(a[e], own);
    bad |= ~(own <= kLarge<T>);
    largest = own > largest ? own : largest;
  }
  T numbers[kLanes<T>], ups[kLanes<T>], downs[kLanes<T>];
  __builtin_memcpy(numbers, &largest, PURAX_BYTES);
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    int exponent = 0;
    if (!bad[lane] && numbers[lane] > 0) __builtin_frexp(double(numbers[lane]), &exponent);
    constexpr int limit = sizeof(T) == 4 ? 125 : 1020;
    exponent = exponent > limit ? limit : exponent < -limit ? -limit : exponent;
    ups[lane] = T(__builtin_ldexp(1.0, -exponent));
    downs[lane] = T(__builtin_ldexp(1.0, exponent));
  }
  __builtin_memcpy(&scale, ups, PURAX_BYTES);
  __builtin_memcpy(&back, downs, PURAX_BYTES);
  for (int64_t e = 0; e < size; ++e) a[e] = bad ? V{} : a[e] * scale;
}

// The rotation by an angle of at most 45° that makes `off` vanish between diagonal elements that differ by `gap`: its
// tangent, its sine, and the tangent of half its angle, or those of no rotation where `off` is to be left.
template <class T>
PURAX_INLINE void rotation(const Vector<T>& gap, const Vector<T>& off, const Mask<T>& turns, Vector<T>& t, Vector<T>& s,
                           Vector<T>& half) {
  using V = Vector<T>;
  V twice = off + off, root;
  square_root<T>(gap * gap + twice * twice, root);
  V divisor = gap < 0 ? gap - root : gap + root;
  t = turns ? twice / divisor : V{};
  square_root<T>(t * t + 1, root);
  s = t / root;
  half = t / (root + 1);
}

// (x, y) ← (c x − s y, s x + c y) with c = 1 − s half, whose rounding would add up over many rotations.
template <class T>
PURAX_INLINE void rotate(Vector<T>& x, Vector<T>& y, const Vector<T>& s, const Vector<T>& half) {
  Vector<T> old = x;
  x = old - s * (y + half * old);
  y = y + s * (old - half * y);
}

// Eigenvalues by rotations of rows and columns, in the order of a tournament, until nothing is left off the diagonal.
template <class T>
void eigh(const T* x, int64_t count, int64_t n, bool lower, T* vectors, T* values, T* space) {
  using V = Vector<T>;
  using M = Mask<T>;
  V *a = reinterpret_cast<V*>(space), *rows = a + n * n, *rest = rows + n * n;
  if (lower) {
    gather_turned<T>(x, count, n, n, a);
  } else {
    gather<T>(x, count, n * n, a);
  }
  for (int64_t i = 1; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) a[i * n + j] = V{};  // only what is above the diagonal is kept
  }
  V back;
  M bad, waits{};
  normalize<T>(a, n * n, back, bad);
  V sum{};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) {
      rows[i * n + j] = rows[j * n + i] = V{} + (i == j ? T(1) : T(0));
      sum += a[i * n + j] * a[i * n + j] * T(i == j ? 1 : 2);
    }
  }
  V small;
  square_root<T>(sum, small);
  small *= kEpsilon<T> / (16 * T(n));
  int64_t rounds = n + (n & 1) - 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    waits = M{};
    for (int64_t round = 0; round < rounds; ++round) {
      for (int64_t index = 0; index <= rounds / 2; ++index) {
        int64_t p, q;
        if (!pair_of(n, round, index, p, q)) continue;
        V off = a[p * n + q], size;
        absolute<T>(off, size);
        M turns = size > small;
        if (!any<T>(turns)) continue;
        waits |= turns;
        V t, s, half;
        rotation<T>(a[q * n + q] - a[p * n + p], off, turns, t, s, half);
        a[p * n + p] -= t * off;
        a[q * n + q] += t * off;
        a[p * n + q] = turns ? V{} : off;
        for (int64_t k = 0; k < p; ++k) rotate<T>(a[k * n + p], a[k * n + q], s, half);
        for (int64_t k = p + 1; k < q; ++k) rotate<T>(a[p * n + k], a[k * n + q], s, half);
        for (int64_t k = q + 1; k < n; ++k) rotate<T>(a[p * n + k], a[q * n + k], s, half);
        for (int64_t k = 0; k < n; ++k) rotate<T>(rows[p * n + k], rows[q * n + k], s, half);
      }
    }
    if (!any<T>(waits)) break;
  }
  const T* from = reinterpret_cast<const T*>(rows);
  const T* diagonal = reinterpret_cast<const T*>(a);
  int32_t* order = reinterpret_cast<int32_t*>(rest);
  for (int64_t lane = 0; lane < count; ++lane) {
    T *w = values + lane * n, *v = vectors + lane * n * n;
    if (bad[lane] || waits[lane]) {
      fill_nan(w, n);
      fill_nan(v, n * n);
      continue;
    }
    for (int64_t i = 0; i < n; ++i) {
      T own = diagonal[(i * n + i) * kLanes<T> + lane] * back[lane];
      int64_t j = i;
      for (; j > 0 && w[j - 1] > own; --j) {
        w[j] = w[j - 1];
        order[j] = order[j - 1];
      }
      w[j] = own;
      order[j] = int32_t(i);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) v[i * n + j] = from[(order[j] * n + i) * kLanes<T> + lane];
    }
  }
}

// Singular values by rotations of columns until they are orthogonal; they are the rows of `g`, least×most. Then their
// lengths are the values, and the reflections that make them triangular complete their directions to a basis.
template <class T>
void svd(const T* x, int64_t count, int64_t rows, int64_t columns, int64_t left, int64_t right, T* s, T* u, T* vt,
         T* space) {
  using V = Vector<T>;
  using M = Mask<T>;
  bool is_tall = rows >= columns;
  int64_t most = is_tall ? rows : columns, least = is_tall ? columns : rows;
  V *g = reinterpret_cast<V*>(space), *turned = g + most * least, *basis = turned + most * least;
  V *w = basis + most * most, *taus = w + least * least, *work = taus + most, *norms = work + most, *rest = norms + most;
  if (is_tall) {
    gather_turned<T>(x, count, rows, columns, g);
  } else {
    gather<T>(x, count, rows * columns, g);
  }
  V back;
  M bad, waits{};
  normalize<T>(g, most * least, back, bad);
  if (u) {
    for (int64_t i = 0; i < least; ++i) {
      for (int64_t j = 0; j < least; ++j) w[i * least + j] = V{} + (i == j ? T(1) : T(0));
    }
  }
  T tolerance = kEpsilon<T> * kEpsilon<T> * T(most);
  int64_t rounds = least + (least & 1) - 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    waits = M{};
    for (int64_t round = 0; round < rounds; ++round) {
      for (int64_t index = 0; index <= rounds / 2; ++index) {
        int64_t p, q;
        if (!pair_of(least, round, index, p, q)) continue;
        V *first = g + p * most, *second = g + q * most, across{}, one{}, two{};
        for (int64_t k = 0; k < most; ++k) {
          across += first[k] * second[k];
          one += first[k] * first[k];
          two += second[k] * second[k];
        }
        M turns = across * across > one * two * tolerance;
        if (!any<T>(turns)) continue;
        waits |= turns;
        V t, sine, half;
        rotation<T>(two - one, across, turns, t, sine, half);
        for (int64_t k = 0; k < most; ++k) rotate<T>(first[k], second[k], sine, half);
        if (!u) continue;
        for (int64_t k = 0; k < least; ++k) rotate<T>(w[p * least + k], w[q * least + k], sine, half);
      }
    }
    if (!any<T>(waits)) break;
  }
  for (int64_t i = 0; i < least; ++i) {
    V sum{};
    for (int64_t k = 0; k < most; ++k) sum += g[i * most + k] * g[i * most + k];
    square_root<T>(sum, norms[i]);
  }
  // The vectors of matrix `lane` in the order of their values: columns of `turned`, and rows of the result.
  int32_t* order = reinterpret_cast<int32_t*>(rest);
  const T *from = reinterpret_cast<const T*>(g), *lengths = reinterpret_cast<const T*>(norms);
  const T* other = reinterpret_cast<const T*>(w);
  T* to = reinterpret_cast<T*>(turned);
  constexpr int64_t lanes = kLanes<T>;
  if (u) __builtin_memset(to, 0, most * least * PURAX_BYTES);
  for (int64_t lane = 0; lane < count; ++lane) {
    T* own = s + lane * least;
    for (int64_t i = 0; i < least; ++i) {
      T value = lengths[i * lanes + lane] * back[lane];
      int64_t j = i;
      for (; j > 0 && own[j - 1] < value; --j) {
        own[j] = own[j - 1];
        order[j] = order[j - 1];
      }
      own[j] = value;
      order[j] = int32_t(i);
    }
    if (!u) continue;
    for (int64_t j = 0; j < least; ++j) {
      const T* row = from + order[j] * most * lanes + lane;
      for (int64_t k = 0; k < most; ++k) to[(k * least + j) * lanes + lane] = row[k * lanes];
      const T* column = other + order[j] * least * lanes + lane;
      for (int64_t k = 0; k < least; ++k) {
        if (is_tall) {
          vt[(lane * right + j) * columns + k] = column[k * lanes];
        } else {
          u[(lane * rows + k) * left + j] = column[k * lanes];
        }
      }
    }
  }
  if (u) {
    int64_t size = is_tall ? left : right;
    reflect<T>(turned, most, least, taus, work);
    reflections_product<T>(turned, most, least, taus, size, basis, work);
    for (int64_t j = 0; j < least; ++j) {  // R is diagonal; its signs belong to the vectors
      M is_negative = turned[j * least + j] < 0;
      for (int64_t k = 0; k < most; ++k) basis[k * size + j] = is_negative ? -basis[k * size + j] : basis[k * size + j];
    }
    if (is_tall) {
      scatter<T>(basis, count, most * size, u);
    } else {
      scatter_turned<T>(basis, count, size, most, vt);
    }
  }
  for (int64_t lane = 0; lane < count; ++lane) {
    if (!bad[lane] && !waits[lane]) continue;
    fill_nan(s + lane * least, least);
    if (!u) continue;
    fill_nan(u + lane * rows * left, rows * left);
    fill_nan(vt + lane * right * columns, right * columns);
  }
}

template <class T>
const SmallKernels<T> kernels = {kLanes<T>, cholesky<T>, lu<T>, triangular<T>, qr<T>, eigh<T>, svd<T>};

#undef PURAX_INLINE
#undef PURAX_BYTES
#undef PURAX_VERSION

}
}
