// The innermost loops of convolutions, in vectors of PURAX_BYTES bytes: products of tiles, transposes, sums by channel.
//
// convolution.cc includes this file once for each set of instructions, in a namespace of its own; everything has internal
// linkage, so that no code for a newer processor is shared with the rest of the library.

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(PURAX_BYTES)));
  static constexpr int lanes = PURAX_BYTES / sizeof(T);
};

template <class T>
struct Bits {
  typedef typename std::conditional<sizeof(T) == 4, int32_t, int64_t>::type integer;
  typedef integer type __attribute__((vector_size(PURAX_BYTES)));
};

template <class V, class B>
inline V only(V value, B mask) {
  return reinterpret_cast<V>(reinterpret_cast<B>(value) & mask);
}

template <class T>
inline typename Vector<T>::type load(const T* from) {
  typename Vector<T>::type value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <class T>
inline void store(T* to, typename Vector<T>::type value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

// c[m, :] = Σ rows[s][m][k] · panel[s][k, :] over segments s and their k; `pitch` leads from the rows of a segment to those
// of the next, and is 0 where all have the same.
template <class T, int ROWS, int VECTORS>
void multiply_rows(const T* const* rows, int64_t pitch, const Segment* segments, int64_t count, const T* panel, T* c,
                   int64_t c_step) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  V sums[ROWS][VECTORS] = {};
  for (int64_t s = 0; s < count; ++s, rows += pitch) {
    const T* b = panel + segments[s].offset * (VECTORS * lanes);
    const T* own[ROWS];
    for (int m = 0; m < ROWS; ++m) own[m] = rows[m] + segments[s].shift;
    int64_t length = segments[s].length;
    for (int64_t k = 0; k < length; ++k, b += VECTORS * lanes) {
      V columns[VECTORS];
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) columns[v] = load<T>(b + v * lanes);
#pragma GCC unroll 16
      for (int m = 0; m < ROWS; ++m) {
        V a = spread(own[m][k]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; ++v) sums[m][v] = multiply_add(a, columns[v], sums[m][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < ROWS; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) store<T>(c + m * c_step + v * lanes, sums[m][v]);
  }
}

// c[m, :] += Σ a[s][k · a_step + m] · b[s][k · b_step + :] over pieces s and their k.
template <class T, int ROWS, int VECTORS>
void multiply_outer(const Piece<T>* pieces, int64_t count, int64_t row, int64_t a_step, int64_t column, int64_t b_step,
                    T* c, int64_t c_step) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  V sums[ROWS][VECTORS];
#pragma GCC unroll 16
  for (int m = 0; m < ROWS; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) sums[m][v] = load<T>(c + m * c_step + v * lanes);
  }
  for (int64_t s = 0; s < count; ++s) {
    const T* a = pieces[s].a + row;
    const T* b = pieces[s].b + column;
    for (int64_t k = 0; k < pieces[s].length; ++k, a += a_step, b += b_step) {
      V columns[VECTORS];
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) columns[v] = load<T>(b + v * lanes);
#pragma GCC unroll 16
      for (int m = 0; m < ROWS; ++m) {
        V own = spread(a[m]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; ++v) sums[m][v] = multiply_add(own, columns[v], sums[m][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < ROWS; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) store<T>(c + m * c_step + v * lanes, sums[m][v]);
  }
}

// --- transposes: columns of `lanes` vectors become vectors, by interleaving the halves as often as a vector halves.

template <class V>
inline V low_halves(V a, V b) {
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 2) return __builtin_shufflevector(a, b, 0, 2);
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 4) return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 8) return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 16) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
}

template <class V>
inline V high_halves(V a, V b) {
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 2) return __builtin_shufflevector(a, b, 1, 3);
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 4) return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 8) return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  if constexpr (sizeof(V) / sizeof(V{}[0]) == 16) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

// to[j · to_step + i] = from[i · from_step + j] for i below `rows` and j below `columns`.
template <class T>
void transpose(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  int64_t j = 0;
  for (; j + lanes <= columns; j += lanes) {
    int64_t i = 0;
    for (; i + lanes <= rows; i += lanes) {
      V a[lanes], b[lanes];
#pragma GCC unroll 16
      for (int r = 0; r < lanes; ++r) {
        a[r] = load<T>(from + (i + r) * from_step + j);
        __builtin_prefetch(from + (i + r) * from_step + j + 4 * lanes, 0, 2);  // rows may be far apart
      }
#pragma GCC unroll 4
      for (int round = 1; round < lanes; round *= 2) {
#pragma GCC unroll 8
        for (int r = 0; r < lanes / 2; ++r) {
          b[2 * r] = low_halves(a[r], a[r + lanes / 2]);
          b[2 * r + 1] = high_halves(a[r], a[r + lanes / 2]);
        }
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r) a[r] = b[r];
      }
#pragma GCC unroll 16
      for (int r = 0; r < lanes; ++r) store<T>(to + (j + r) * to_step + i, a[r]);
    }
    for (; i < rows; ++i) {
      for (int r = 0; r < lanes; ++r) to[(j + r) * to_step + i] = from[i * from_step + j + r];
    }
  }
  for (; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] = from[i * from_step + j];
  }
}

// --- one channel per group

// sums[s][:] += x[s][k] · y[k] along k in vectors, `count` sums at a time.
template <class T, int COUNT>
void correlate(const T* const* x, const T* y, int64_t length, T* sums) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  V own[COUNT];
  for (int s = 0; s < COUNT; ++s) own[s] = load<T>(sums + s * lanes);
  int64_t k = 0;
  for (; k + lanes <= length; k += lanes) {
    V b = load<T>(y + k);
#pragma GCC unroll 9
    for (int s = 0; s < COUNT; ++s) own[s] = multiply_add(load<T>(x[s] + k), b, own[s]);
  }
  if (k < length && length >= lanes) {  // the last full vector, without what was done
    typename Bits<T>::type mask;
    for (int r = 0; r < lanes; ++r) mask[r] = r < lanes - (length - k) ? 0 : -1;
    V b = only(load<T>(y + length - lanes), mask);
#pragma GCC unroll 9
    for (int s = 0; s < COUNT; ++s) own[s] = multiply_add(only(load<T>(x[s] + length - lanes), mask), b, own[s]);
  } else if (k < length) {
    for (int s = 0; s < COUNT; ++s) {
      T rest = 0;
      for (int64_t r = k; r < length; ++r) rest += x[s][r] * y[r];
      own[s][0] += rest;
    }
  }
  for (int s = 0; s < COUNT; ++s) store<T>(sums + s * lanes, own[s]);
}

// sums[c] += x[k · x_step + c] · y[k · y_step + c] over k, for all channels c.
template <class T>
void correlate_channels(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t length, int64_t channels, T* sums) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  int64_t c = 0;
  for (; c + 2 * lanes <= channels; c += 2 * lanes) {
    V first = load<T>(sums + c), second = load<T>(sums + c + lanes);
    for (int64_t k = 0; k < length; ++k) {
      const T *a = x + k * x_step + c, *b = y + k * y_step + c;
      first = multiply_add(load<T>(a), load<T>(b), first);
      second = multiply_add(load<T>(a + lanes), load<T>(b + lanes), second);
    }
    store<T>(sums + c, first);
    store<T>(sums + c + lanes, second);
  }
  for (; c + lanes <= channels; c += lanes) {
    V own = load<T>(sums + c);
    for (int64_t k = 0; k < length; ++k) {
      own = multiply_add(load<T>(x + k * x_step + c), load<T>(y + k * y_step + c), own);
    }
    store<T>(sums + c, own);
  }
  for (; c < channels; ++c) {
    T own = sums[c];
    for (int64_t k = 0; k < length; ++k) own += x[k * x_step + c] * y[k * y_step + c];
    sums[c] = own;
  }
}

template <class T>
Loops<T> loops() {
  return {
      Vector<T>::lanes,
      PURAX_ROWS,
      {{multiply_rows<T, 1, 1>, multiply_rows<T, 1, 2>},
       {multiply_rows<T, 2, 1>, multiply_rows<T, 2, 2>},
       {multiply_rows<T, 4, 1>, multiply_rows<T, 4, 2>},
       {multiply_rows<T, PURAX_ROWS * 2 / 3, 1>, multiply_rows<T, PURAX_ROWS * 2 / 3, 2>},
       {multiply_rows<T, PURAX_ROWS, 1>, multiply_rows<T, PURAX_ROWS, 2>}},
      {{multiply_outer<T, 1, 1>, multiply_outer<T, 1, 2>},
       {multiply_outer<T, 2, 1>, multiply_outer<T, 2, 2>},
       {multiply_outer<T, 4, 1>, multiply_outer<T, 4, 2>},
       {multiply_outer<T, PURAX_ROWS * 2 / 3, 1>, multiply_outer<T, PURAX_ROWS * 2 / 3, 2>},
       {multiply_outer<T, PURAX_ROWS, 1>, multiply_outer<T, PURAX_ROWS, 2>}},
      transpose<T>,
      {correlate<T, 1>, correlate<T, 2>, correlate<T, 3>, correlate<T, 4>, correlate<T, 5>, correlate<T, 6>,
       correlate<T, 7>, correlate<T, 8>, correlate<T, 9>},
      correlate_channels<T>,
  };
}
