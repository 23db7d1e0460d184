// The loops of row programs over numbers in the cache. Truth values are 1 and 0.
//
// Included several times, in a namespace for each set of instructions, with kVectorBytes as wide as its vectors: it must
// not call functions that others share.

typedef float Lane __attribute__((vector_size(kVectorBytes)));
constexpr int64_t kLanes = kVectorBytes / sizeof(float);

#define PURAX_INLINE inline __attribute__((always_inline))

PURAX_INLINE int32_t bits_of(float x) {
  int32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}

PURAX_INLINE float from_bits(int32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

constexpr float kToBits = 12582912.f;  // 1.5 · 2²³: adding it leaves a small integer in the lowest bits
constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440054690583e-4f;

// The same formulas as purax/primitives/elementwise/fast_exponentials.py, where they are explained.
PURAX_INLINE float exponential(float x) {
  const float clamped = x > 89.f ? 89.f : (x < -88.f ? -88.f : x);
  const float whole = (clamped * 1.44269504f + kToBits) - kToBits;
  const float r = (clamped - whole * kLog2High) - whole * kLog2Low;
  const float tail =
      (((1.3926246483e-03f * r + 8.3632294023e-03f) * r + 4.1666554239e-02f) * r + 1.6666576687e-01f) * r + 0.5f;
  const float fraction = (r + r * r * tail) + 1.f;
  const float result = from_bits(bits_of(fraction) + (bits_of(whole + kToBits) << 23));
  const float known = x < -87.336540f ? 0.f : result;
  const float bounded = x > 88.722832f ? __builtin_inff() : known;
  return x != x ? x : bounded;
}

PURAX_INLINE float hyperbolic_tangent(float x) {
  const float size = from_bits(bits_of(x) & 0x7fffffff), near = size > 10.f ? 10.f : size;
  const float whole = ((near * 2.88539008f - 0.25f) + kToBits) - kToBits;  // the floor of what 0.25 is added to
  const float r = (near - whole * (kLog2High / 2)) - whole * (kLog2Low / 2);
  const float tail = ((((2.9015526640e-02f * r + 8.8399262133e-02f) * r + 2.6664898028e-01f) * r + 6.6667155740e-01f) *
                          r + 1.3333333320f) * r + 1.9999999938f;
  const float rest = r * 2 + r * r * tail;
  const float scale = from_bits((bits_of(whole + kToBits) << 23) + (127 << 23));
  const float w = scale * rest + (scale - 1);
  const float ratio = w / (w + 2);
  const float bounded = size > 9.02f ? 1.f : ratio;
  const float result = x != x ? x : bounded;
  return from_bits(bits_of(result) | (bits_of(x) & int32_t(0x80000000)));
}

PURAX_INLINE float logarithm(float x) {
  const int32_t bits = bits_of(x);
  const int32_t exponent = (bits - 0x3F3504F3) & ~0x7FFFFF;  // k 2²³
  const float whole = float(exponent) * 1.1920928955078125e-07f;
  const float f = from_bits(bits - exponent) - 1, z = f * f;
  const float series =
      (((((((6.9697539837e-02f * f - 1.1479188088e-01f) * f + 1.1685795939e-01f) * f - 1.2425776723e-01f) * f +
          1.4249032731e-01f) * f - 1.6667798276e-01f) * f + 2.0000716304e-01f) * f - 2.4999997001e-01f) * f +
      3.3333331178e-01f;
  const float tail = f * z * series + whole * kLog2Low;
  const float result = (tail - z * 0.5f + f) + whole * kLog2High;
  const float small = x == 0.f ? -__builtin_inff() : __builtin_nanf("");
  const float bounded = x < __builtin_inff() ? result : x;
  return x >= 1.17549435e-38f ? bounded : (x > 0.f ? -__builtin_inff() : small);
}

// --- element by element

#define PURAX_UNARY(name, expression)                  \
  struct name {                                        \
    static PURAX_INLINE float apply(float x, float, float) { \
      return expression;                               \
    }                                                  \
    static constexpr int kOperands = 1;                \
  };
#define PURAX_BINARY(name, expression)                 \
  struct name {                                        \
    static PURAX_INLINE float apply(float x, float y, float) { \
      return expression;                               \
    }                                                  \
    static constexpr int kOperands = 2;                \
  };

PURAX_UNARY(Copy, x)
PURAX_UNARY(Neg, -x)
PURAX_UNARY(Abs, from_bits(bits_of(x) & 0x7fffffff))
PURAX_UNARY(Sqrt, __builtin_sqrtf(x))
PURAX_UNARY(Rsqrt, 1.f / __builtin_sqrtf(x))
PURAX_UNARY(Exp, exponential(x))
PURAX_UNARY(Tanh, hyperbolic_tangent(x))
PURAX_UNARY(Logistic, 1.f / (1.f + exponential(-x)))
PURAX_UNARY(Log, logarithm(x))
PURAX_UNARY(Not, 1.f - x)
PURAX_BINARY(Add, x + y)
PURAX_BINARY(Sub, x - y)
PURAX_BINARY(Mul, x * y)
PURAX_BINARY(Div, x / y)
PURAX_BINARY(Max, x != x ? x : (x > y ? x : y))
PURAX_BINARY(Min, x != x ? x : (x < y ? x : y))
PURAX_BINARY(Eq, x == y ? 1.f : 0.f)
PURAX_BINARY(Ne, x != y ? 1.f : 0.f)
PURAX_BINARY(Lt, x < y ? 1.f : 0.f)
PURAX_BINARY(Le, x <= y ? 1.f : 0.f)
PURAX_BINARY(Gt, x > y ? 1.f : 0.f)
PURAX_BINARY(Ge, x >= y ? 1.f : 0.f)
PURAX_BINARY(And, x * y)
PURAX_BINARY(Or, x > y ? x : y)

struct Select {  // as `select_n`: the second where the first is false
  static PURAX_INLINE float apply(float x, float y, float z) { return x != 0.f ? z : y; }
  static constexpr int kOperands = 3;
};

template <class Op, bool kA, bool kB, bool kC>
void map_rows(float* out, RowOperand a, RowOperand b, RowOperand c, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *of_a = a.data + row * a.step, *of_b = b.data + row * b.step, *of_c = c.data + row * c.step;
    const float one_a = kA ? *of_a : 0.f, one_b = kB ? *of_b : 0.f, one_c = kC ? *of_c : 0.f;
    float* to = out + row * width;
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) {
      to[i] = Op::apply(kA ? one_a : of_a[i], kB ? one_b : of_b[i], kC ? one_c : of_c[i]);
    }
  }
}

inline bool is_even(const RowOperand& x, int64_t width) { return x.single ? x.step == 0 : x.step == width; }

template <class Op>
void map(float* out, RowOperand a, RowOperand b, RowOperand c, int64_t rows, int64_t width) {
  if constexpr (Op::kOperands < 2) b = {a.data, 0, true};
  if constexpr (Op::kOperands < 3) c = {a.data, 0, true};
  if (is_even(a, width) && is_even(b, width) && is_even(c, width)) {
    width *= rows;
    rows = 1;
  }
  if constexpr (Op::kOperands == 1) {
    (a.single ? map_rows<Op, true, true, true> : map_rows<Op, false, true, true>)(out, a, b, c, rows, width);
  } else if constexpr (Op::kOperands == 2) {
    constexpr RowLoop forms[] = {map_rows<Op, false, false, true>, map_rows<Op, false, true, true>,
                                 map_rows<Op, true, false, true>, map_rows<Op, true, true, true>};
    forms[2 * a.single + b.single](out, a, b, c, rows, width);
  } else {
    constexpr RowLoop forms[] = {map_rows<Op, false, false, false>, map_rows<Op, false, false, true>,
                                 map_rows<Op, false, true, false>,  map_rows<Op, false, true, true>,
                                 map_rows<Op, true, false, false>,  map_rows<Op, true, false, true>,
                                 map_rows<Op, true, true, false>,   map_rows<Op, true, true, true>};
    forms[4 * a.single + 2 * b.single + c.single](out, a, b, c, rows, width);
  }
}

// --- reductions

struct Summed {
  static constexpr float kStart = 0.f;
  template <class V>
  static PURAX_INLINE V join(V a, V b) { return a + b; }
};

struct Largest {  // NaN wins
  static constexpr float kStart = -__builtin_inff();
  template <class V>
  static PURAX_INLINE V join(V a, V b) {
    V larger = b > a ? b : a;
    return b != b ? b : larger;
  }
};

PURAX_INLINE Lane lane_at(const float* from) {
  Lane out;
  __builtin_memcpy(&out, from, sizeof(out));
  return out;
}

template <class Op>
void reduce_rows(float* out, RowOperand a, RowOperand, RowOperand, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = a.data + row * a.step;
    Lane first = Op::kStart - Lane{} , second = first;
    int64_t i = 0;
    for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
      first = Op::join(first, lane_at(from + i));
      second = Op::join(second, lane_at(from + i + kLanes));
    }
    first = Op::join(first, second);
    float total = Op::kStart;
    for (int64_t lane = 0; lane < kLanes; ++lane) total = Op::join(total, first[lane]);
    for (; i < width; ++i) total = Op::join(total, from[i]);
    out[row] = total;
  }
}

void add_rows(float* out, RowOperand a, RowOperand, RowOperand, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = a.data + row * a.step;
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) out[i] += from[i];
  }
}

constexpr RowLoop kLoops[] = {
    nullptr, nullptr, map<Copy>, map<Neg>, map<Abs>, map<Sqrt>, map<Rsqrt>, map<Exp>, map<Tanh>, map<Logistic>,
    map<Log>, map<Not>, map<Add>, map<Sub>, map<Mul>, map<Div>, map<Max>, map<Min>, map<Eq>, map<Ne>, map<Lt>, map<Le>,
    map<Gt>, map<Ge>, map<And>, map<Or>, map<Select>, reduce_rows<Summed>, reduce_rows<Largest>, add_rows,
};
static_assert(sizeof(kLoops) / sizeof(kLoops[0]) == static_cast<size_t>(RowOp::kCount));

#undef PURAX_UNARY
#undef PURAX_BINARY
#undef PURAX_INLINE
