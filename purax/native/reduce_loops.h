// The innermost loops of reductions: a line of numbers, the product of two lines, rows of a matrix.
//
// Included several times, in a namespace for each set of instructions, with kVectorBytes as wide as its vectors: it must
// not call functions that others share. Vectors of partial results run side by side.

template <class T>
struct Wide {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};

template <class T>
using Vector = typename Wide<T>::type;

template <class T>
inline __attribute__((always_inline)) Vector<T> vector_at(const T* from) {
  Vector<T> out;
  __builtin_memcpy(&out, from, kVectorBytes);
  return out;
}

template <class T>
struct Sum {
  using Number = T;
  static constexpr T start() { return T(0); }
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    return a + b;
  }
};

// NaN wins; of vectors, element by element.
template <class T>
struct Maximum {
  using Number = T;
  static constexpr T start() { return Limits<T>::kLeast; }
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    V larger = b > a ? b : a;
    if constexpr (std::is_floating_point_v<T>) larger = b != b ? b : larger;
    return larger;
  }
};

template <class T>
struct Minimum {
  using Number = T;
  static constexpr T start() { return Limits<T>::kMost; }
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    V smaller = b < a ? b : a;
    if constexpr (std::is_floating_point_v<T>) smaller = b != b ? b : smaller;
    return smaller;
  }
};

// All of `count` numbers that `at` gives as vectors and `one` singly.
template <class Op, class At, class One>
inline __attribute__((always_inline)) typename Op::Number fold(int64_t count, At at, One one) {
  using T = typename Op::Number;
  constexpr int64_t kLanes = kVectorBytes / sizeof(T), kStep = 4 * kLanes;
  T total = Op::start();
  int64_t i = 0;
  if (count >= kStep) {
    Vector<T> a = at(0), b = at(kLanes), c = at(2 * kLanes), d = at(3 * kLanes);
    for (i = kStep; i + kStep <= count; i += kStep) {
      a = Op::apply(a, at(i));
      b = Op::apply(b, at(i + kLanes));
      c = Op::apply(c, at(i + 2 * kLanes));
      d = Op::apply(d, at(i + 3 * kLanes));
    }
    a = Op::apply(Op::apply(a, b), Op::apply(c, d));
    total = a[0];
    for (int64_t lane = 1; lane < kLanes; ++lane) total = Op::apply(total, T(a[lane]));
  }
  for (; i < count; ++i) total = Op::apply(total, one(i));
  return total;
}

template <class Op, class T>
T fold_line(const T* x, int64_t count) {
  return fold<Op>(count, [x](int64_t i) { return vector_at(x + i); }, [x](int64_t i) { return x[i]; });
}

template <class T>
T fold_product(const T* x, const T* y, int64_t count) {
  return fold<Sum<T>>(
      count, [x, y](int64_t i) { return Vector<T>(vector_at(x + i) * vector_at(y + i)); },
      [x, y](int64_t i) { return T(x[i] * y[i]); });
}

// Rows of a matrix, combined by fours into `out`.
template <class Op, class T>
void fold_rows(const T* x, int64_t rows, int64_t inner, int64_t width, T* __restrict out) {
  if (!rows) {
    for (int64_t j = 0; j < width; ++j) out[j] = Op::start();
    return;
  }
  __builtin_memcpy(out, x, width * sizeof(T));
  int64_t row = 1;
  for (; row + 4 <= rows; row += 4) {
    const T *a = x + row * inner, *b = a + inner, *c = b + inner, *d = c + inner;
    for (int64_t j = 0; j < width; ++j) {
      out[j] = Op::apply(out[j], Op::apply(Op::apply(a[j], b[j]), Op::apply(c[j], d[j])));
    }
  }
  for (; row < rows; ++row) {
    const T* a = x + row * inner;
    for (int64_t j = 0; j < width; ++j) out[j] = Op::apply(out[j], a[j]);
  }
}

template <class T>
constexpr Loops<T> loops() {
  return {{fold_line<Sum<T>, T>, fold_line<Maximum<T>, T>, fold_line<Minimum<T>, T>},
          {fold_rows<Sum<T>, T>, fold_rows<Maximum<T>, T>, fold_rows<Minimum<T>, T>},
          fold_product<T>};
}
