// the FFT of lengths without large prime factors.
//
// Lines of moderate length are transformed side by side, one per lane of a vector (`fft_lines.h`). A long line of n =
// n₁·n₂ elements is a matrix: its columns are transformed, multiplied by roots of unity, and then the rows; so it is
// read and written twice, whatever its length, and all threads have work.
#include "fft.h"

#include <cmath>
#include <map>
#include <mutex>

#include "checks.h"

namespace purax {
namespace {

using namespace fourier;

constexpr size_t kPlans = 32;  // that are kept, for each kind

std::vector<int> radices_of(int64_t n) {
  std::vector<int> radices;
  for (int radix : {13, 11, 7, 5, 3, 4, 2}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  return n == 1 ? radices : std::vector<int>{0};
}

// exp(-2πi t/n), from an angle of at most an eighth of a turn.
void root_of_unity(int64_t t, int64_t n, long double* out) {
  t %= n;
  int64_t quarter = 4 * t / n, rest = 4 * t - quarter * n;  // the angle is (quarter + rest/n) quarters of a turn
  bool is_large = 2 * rest > n;
  long double angle = std::acos(-1.0L) / 2 * (is_large ? n - rest : rest) / n;
  long double c = std::cos(angle), s = std::sin(angle);
  if (is_large) std::swap(c, s);
  switch (quarter) {
    case 0: out[0] = c, out[1] = -s; break;
    case 1: out[0] = -s, out[1] = -c; break;
    case 2: out[0] = -c, out[1] = s; break;
    default: out[0] = s, out[1] = c;
  }
}

template <class Number>
std::vector<Number> roots_of_unity(int64_t count, int64_t step, int64_t n) {
  std::vector<Number> roots(2 * count);
  for (int64_t t = 0; t < count; ++t) {
    long double root[2];
    root_of_unity(t * step, n, root);
    roots[2 * t] = Number(root[0]), roots[2 * t + 1] = Number(root[1]);
  }
  return roots;
}

// What `make(key)` gave before for this key, if it is still kept.
template <class Value, class Make>
std::shared_ptr<const Value> kept(int64_t key, Make make) {
  static std::mutex mutex;
  static std::map<int64_t, std::shared_ptr<const Value>> values;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = values.find(key);
    if (found != values.end()) return found->second;
  }
  auto made = std::make_shared<const Value>(make());
  std::lock_guard<std::mutex> lock(mutex);
  if (values.size() >= kPlans) values.clear();
  values[key] = made;
  return made;
}

template <class T>
std::shared_ptr<const Plan<T>> plan_for(int64_t size) {
  return kept<Plan<T>>(size, [size] {
    return Plan<T>{size, radices_of(size), roots_of_unity<T>(size, 1, size),
                   roots_of_unity<T>(size / 2 + 1, 1, 2 * size)};
  });
}

template <class T>
constexpr int64_t lanes_of() {
  return kLaneBytes / sizeof(T);
}

// The numbers that a long line needs: roots for the whole length, and those of the first lanes for each row.
template <class T>
struct LongPlan {
  int64_t rows, columns;
  Roots<T> roots;
  std::vector<T> memory;
  int64_t offset;

  const T* lanes() const { return memory.data() + offset; }
};

// The first multiple of the vectors' size in bytes at or after `x`, as an index.
template <class T>
int64_t aligned_offset(const T* x) {
  return int64_t((kLaneBytes - reinterpret_cast<uintptr_t>(x) % kLaneBytes) % kLaneBytes / sizeof(T));
}

template <class T>
Roots<T> make_roots(int64_t n) {
  using Precise = typename Roots<T>::Precise;
  int shift = 0;
  while ((int64_t(1) << (2 * shift)) < n) ++shift;
  int64_t step = int64_t(1) << shift;
  return {n, shift, roots_of_unity<Precise>(ceil_div(n, step), step, n),
          roots_of_unity<Precise>(std::min(step, n), 1, n)};
}

int64_t rows_of(int64_t n) {
  int64_t rows = int64_t(std::sqrt(double(n)));
  while (n % rows) --rows;
  return rows;
}

template <class T>
std::shared_ptr<const LongPlan<T>> long_plan_for(int64_t n) {
  return kept<LongPlan<T>>(n, [n] {
    int64_t rows = rows_of(n), lanes = lanes_of<T>();
    LongPlan<T> plan{rows, n / rows, make_roots<T>(n), std::vector<T>((2 * rows + 1) * lanes), 0};
    plan.offset = aligned_offset(plan.memory.data());
    T* out = plan.memory.data() + plan.offset;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        typename Roots<T>::Precise root[2];
        plan.roots.at(row * lane % n, root);
        out[2 * row * lanes + lane] = T(root[0]);
        out[(2 * row + 1) * lanes + lane] = T(root[1]);
      }
    }
    return plan;
  });
}

// Runs a pass for each of `outer` arrays, which lie `from_outer` and `to_outer` pairs apart.
template <class T>
void run_pass(Workers& workers, const Pass<T>& pass, int64_t outer, int64_t from_outer, int64_t to_outer) {
  static const Transform<T> transform = best_transform(T());
  int64_t lanes = lanes_of<T>(), groups = ceil_div(pass.lines, lanes), all = outer * groups;
  int64_t cost = outer * pass.lines * pass.plan->size * 2 * int64_t(sizeof(T));
  int64_t tasks = std::min(all, 4 * workers.count()), share = ceil_div(all, tasks);
  workers.run(tasks, cost, [&](int64_t task) {
    int64_t begin = task * share, end = std::min(all, begin + share);
    if (begin >= end) return;
    Scratch<T> memory((4 * (pass.plan->size + 1) + 1) * lanes);
    T* aligned = memory.get() + aligned_offset(memory.get());
    for (int64_t i = begin; i < end; ++i) {
      Pass<T> own = pass;
      own.from += 2 * from_outer * (i / groups);
      own.to += 2 * to_outer * (i / groups);
      transform(own, i % groups * lanes, aligned);
    }
  });
}

// One long line of n pairs, by its columns and then its rows.
template <class T>
void transform_long(Workers& workers, const T* from, T* to, int64_t n, bool inverse, T scale, T* scratch) {
  auto plan = long_plan_for<T>(n);
  auto first = plan_for<T>(plan->rows), second = plan_for<T>(plan->columns);
  int64_t pitch = plan->columns + kLaneBytes / (2 * sizeof(T));  // rows of powers of two would share sets of the cache
  Pass<T> columns{from, scratch, 1, plan->columns, 1, pitch, plan->columns, first.get()};
  columns.inverse = inverse;
  columns.twist = &plan->roots;
  columns.lanes = plan->lanes();
  // What an inverse transform swaps on its way in stays swapped in between, where it is the transform of swapped numbers.
  Pass<T> rows{scratch, to, pitch, 1, 1, plan->rows, plan->rows, second.get()};
  rows.inverse = inverse;
  rows.scale = scale;
  run_pass(workers, columns, 1, 0, 0);
  run_pass(workers, rows, 1, 0, 0);
}

int64_t long_scratch(int64_t n) {
  int64_t rows = rows_of(n);
  return 2 * (n + rows * kLaneBytes / 8);
}

// `halve` and `double_up` of fft_lines.h for one long line, from and to memory.
template <class T>
void ends_of_long(Workers& workers, const T* from, T* to, int64_t m, bool is_forward) {
  auto roots = kept<Roots<T>>(2 * m, [m] { return make_roots<T>(2 * m); });
  int64_t last = m / 2, part = 4096;
  workers.run(ceil_div(last + 1, part), m * 2 * int64_t(sizeof(T)), [&](int64_t task) {
    for (int64_t k = task * part; k < std::min(last + 1, (task + 1) * part); ++k) {
      if (k == 0) {
        T a = from[0], b = is_forward ? from[1] : from[2 * m];
        to[0] = a + b, to[1] = is_forward ? T(0) : a - b;
        if (is_forward) to[2 * m] = a - b, to[2 * m + 1] = 0;
        continue;
      }
      typename Roots<T>::Precise precise[2];
      roots->at(k, precise);
      T c = T(precise[0]), s = T(precise[1]), half = is_forward ? T(0.5) : T(1);
      T ar = from[2 * k], ai = from[2 * k + 1], br = from[2 * (m - k)], bi = from[2 * (m - k) + 1];
      T even_re = (ar + br) * half, even_im = (ai - bi) * half;
      T x = (ai + bi) * half, y = (br - ar) * half;
      T odd_re = is_forward ? x * c - y * s : -x * c - y * s;
      T odd_im = is_forward ? x * s + y * c : x * s - y * c;
      to[2 * k] = even_re + odd_re, to[2 * k + 1] = even_im + odd_im;
      to[2 * (m - k)] = even_re - odd_re, to[2 * (m - k) + 1] = odd_im - even_im;
    }
  });
}

// Whether lines along the last axis are cut: where they are too long for one go, or too few to fill the lanes.
template <class T>
bool are_long(int64_t lines, int64_t size) {
  return size > kLongestLine || (lines < lanes_of<T>() / 2 && size >= 1024 && rows_of(size) > 8);
}

template <class T>
void along_last(Workers& workers, const T* from, T* to, int64_t lines, int64_t size, Ends ends, bool inverse, T scale) {
  int64_t from_size = size + (ends == kHalfToReal), to_size = size + (ends == kRealToHalf);
  if (!are_long<T>(lines, size)) {
    auto plan = plan_for<T>(size);
    Pass<T> pass{from, to, from_size, 1, to_size, 1, lines, plan.get(), ends, inverse, scale};
    return run_pass(workers, pass, 1, 0, 0);
  }
  Scratch<T> scratch(long_scratch(size));
  Scratch<T> prepared(ends == kHalfToReal ? 2 * size : 1);
  for (int64_t line = 0; line < lines; ++line) {
    const T* own = from + 2 * line * from_size;
    T* out = to + 2 * line * to_size;
    if (ends == kHalfToReal) {
      ends_of_long(workers, own, prepared.get(), size, false);
      own = prepared.get();
    }
    transform_long(workers, own, out, size, inverse || ends == kHalfToReal, scale, scratch.get());
    if (ends == kRealToHalf) ends_of_long<T>(workers, out, out, size, true);
  }
}

enum Kind { kForward, kInverse, kReal, kInverseReal };

// `lengths` are those of the axes that are transformed, the last ones of `outer` arrays.
template <class T>
void transform_axes(Workers& workers, const T* from, T* to, int64_t outer, const int64_t* lengths, int64_t count,
                    int64_t kind) {
  bool inverse = kind == kInverse || kind == kInverseReal;
  bool is_real = kind == kReal || kind == kInverseReal;
  int64_t last = is_real ? lengths[count - 1] / 2 : lengths[count - 1];
  int64_t width = is_real ? last + 1 : last;  // of a row of complex numbers
  int64_t lines = outer;
  long double total = lengths[count - 1];
  for (int64_t i = 0; i < count - 1; ++i) lines *= lengths[i], total *= lengths[i];
  // A transform from half to real is that of half the length, of numbers twice as large, so the same factor serves both.
  T scale = inverse ? T(1 / total) : T(1);
  Ends ends = kind == kReal ? kRealToHalf : kind == kInverseReal ? kHalfToReal : kComplex;
  Scratch<T> scratch(kind == kInverseReal && count > 1 ? 2 * lines * width : 1);
  T* whole = kind == kInverseReal ? scratch.get() : to;  // where all is complex
  if (kind != kInverseReal) along_last<T>(workers, from, to, lines, last, ends, inverse, scale);
  const T* source = kind == kInverseReal ? from : to;
  int64_t inner = width, before = lines;
  for (int64_t axis = count - 2; axis >= 0; --axis) {
    int64_t size = lengths[axis];
    before /= size;
    auto plan = plan_for<T>(size);
    Pass<T> pass{source, whole, 1, inner, 1, inner, inner, plan.get()};
    pass.inverse = inverse;
    run_pass(workers, pass, before, size * inner, size * inner);
    source = whole;
    inner *= size;
  }
  if (kind == kInverseReal) along_last<T>(workers, source, to, lines, last, ends, false, scale);
}

// Whether there is a plan for a length: it has no large prime factor.
bool has_plan(int64_t n) {
  if (n < 1) return false;
  for (int64_t radix : {13, 11, 7, 5, 3, 2}) {
    while (n % radix == 0) n /= radix;
  }
  return n == 1;
}

// Whether the arrays are those of the transform: of real numbers, half of the complex ones are there, and one more.
bool are_of_transform(int64_t kind, int64_t outer, int64_t axes, const int64_t* lengths, const ffi::AnyBuffer& operand,
                      const ffi::AnyBuffer& result) {
  if (kind < kForward || kind > kInverseReal || axes < 1 || axes > 3) return false;
  const bool is_real = kind == kReal || kind == kInverseReal;
  int64_t before = outer, last = lengths[axes - 1];
  if (!has_plan(last) || (is_real && last % 2)) return false;
  for (int64_t i = 0; i < axes - 1; ++i) {
    before = count_of({before, lengths[i]});
    if (!has_plan(lengths[i]) || before < 0) return false;
  }
  const ffi::DataType from = operand.element_type(), to = result.element_type();
  const bool is_single = from == ffi::DataType::F32 || from == ffi::DataType::C64;
  const ffi::DataType reals = is_single ? ffi::DataType::F32 : ffi::DataType::F64;
  const ffi::DataType pairs = is_single ? ffi::DataType::C64 : ffi::DataType::C128;
  return from == (kind == kReal ? reals : pairs) && to == (kind == kInverseReal ? reals : pairs) &&
         has_size(operand, {before, kind == kInverseReal ? last / 2 + 1 : last}) &&
         has_size(result, {before, kind == kReal ? last / 2 + 1 : last});
}

ffi::Error fft(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::Result<ffi::AnyBuffer> result, int64_t kind,
               int64_t outer, int64_t axes, int64_t first, int64_t second, int64_t third) {
  Workers workers(pool);
  if (!operand.element_count() || !result->element_count()) return ffi::Error::Success();
  const int64_t lengths[] = {first, second, third};
  if (outer == -1 && axes >= 1 && axes <= 3) {
    const bool is_halved = kind == kInverseReal;
    int64_t each = is_halved ? lengths[axes - 1] / 2 + 1 : lengths[axes - 1];
    for (int64_t i = 0; i < axes - 1; ++i) each = count_of({each, lengths[i]});
    outer = leading_count(operand, outer, {each});
  }
  if (!are_of_transform(kind, outer, axes, lengths, operand, *result)) return wrong_sizes("fft");
  auto run = [&](auto number) {
    using T = decltype(number);
    transform_axes(workers, static_cast<const T*>(operand.untyped_data()), static_cast<T*>(result->untyped_data()),
                   outer, lengths, axes, kind);
    return ffi::Error::Success();
  };
  switch (operand.element_type()) {
    case ffi::DataType::F32:
    case ffi::DataType::C64: return run(float());
    case ffi::DataType::F64:
    case ffi::DataType::C128: return run(double());
    default: return invalid("fft: a dtype without a kernel");
  }
}

}  // namespace

PURAX_HANDLER(purax_fft, fft,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("kind")
                  .Attr<int64_t>("outer")
                  .Attr<int64_t>("axes")
                  .Attr<int64_t>("first")
                  .Attr<int64_t>("second")
                  .Attr<int64_t>("third"))

}  // namespace purax
