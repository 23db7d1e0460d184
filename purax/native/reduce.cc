// Sums, extrema and where they are, and products of two vectors, of arrays that lie in memory.
//
// Work is cut into parts whose sizes depend on the array alone, so that results do not depend on the number of threads.
// Inside of a part, vectors of partial results run side by side, which also keeps rounding errors of sums small.
#include "reduce.h"
#include "types.h"

namespace purax {
namespace {

constexpr int64_t kPart = 1 << 14;   // elements of a line that one part has
constexpr int64_t kBlock = 1 << 10;  // elements among which an extremum is looked for again

// One of two numbers, or their sum; NaN wins.
template <class T>
T combined(Reduction kind, T a, T b) {
  switch (kind) {
    case kSum: return a + b;
    case kMaximum: return b != b || b > a ? b : a;
    default: return b != b || b < a ? b : a;
  }
}

// Neighbours are combined until one is left.
template <class T>
T fold_parts(Reduction kind, T* parts, int64_t count) {
  for (; count > 1; count = ceil_div(count, 2)) {
    for (int64_t i = 0; i < count / 2; ++i) parts[i] = combined(kind, parts[2 * i], parts[2 * i + 1]);
    if (count % 2) parts[count / 2] = parts[count - 1];
  }
  return parts[0];
}

// A result for each of `lines` from its parts: `part(line, begin, count)`.
template <class T, class Part>
void fold_lines(Workers& workers, Reduction kind, int64_t lines, int64_t size, int64_t bytes, T* out, Part part) {
  int64_t parts = std::max<int64_t>(1, ceil_div(size, kPart));
  int64_t group = std::max<int64_t>(1, kPart / std::max<int64_t>(size, 1));
  if (parts == 1) {
    workers.run(ceil_div(lines, group), bytes, [&](int64_t task) {
      for (int64_t line = task * group; line < std::min(lines, (task + 1) * group); ++line) {
        out[line] = part(line, 0, size);
      }
    });
    return;
  }
  Scratch<T> partial(lines * parts);
  workers.run(lines * parts, bytes, [&](int64_t task) {
    int64_t begin = task % parts * kPart;
    partial[task] = part(task / parts, begin, std::min(kPart, size - begin));
  });
  for (int64_t line = 0; line < lines; ++line) out[line] = fold_parts(kind, partial.get() + line * parts, parts);
}

template <class T>
void fold_columns(Workers& workers, Reduction kind, const T* x, int64_t outer, int64_t size, int64_t inner, T* out) {
  constexpr int64_t kWidth = 2048;  // columns whose partial results stay in the innermost cache
  auto fold_rows = loops_for<T>().rows[kind];
  int64_t blocks = ceil_div(inner, kWidth), rows = std::max<int64_t>(32, 8 * kPart / std::min(inner, kWidth));
  int64_t parts = std::max<int64_t>(1, ceil_div(size, rows));
  Scratch<T> partial(parts > 1 ? outer * parts * inner : 1);
  workers.run(outer * blocks * parts, outer * size * inner * int64_t(sizeof(T)), [&](int64_t task) {
    int64_t part = task % parts, block = task / parts % blocks, which = task / parts / blocks;
    int64_t column = block * kWidth, first = part * rows;
    T* target = parts > 1 ? partial.get() + (which * parts + part) * inner : out + which * inner;
    fold_rows(x + (which * size + first) * inner + column, std::min(rows, size - first), inner,
              std::min(kWidth, inner - column), target + column);
  });
  if (parts == 1) return;
  for (int64_t which = 0; which < outer; ++which) {
    fold_rows(partial.get() + which * parts * inner, parts, inner, inner, out + which * inner);
  }
}

template <class T>
void reduce_with(Workers& workers, Reduction kind, const void* from, void* to, int64_t outer, int64_t size,
                 int64_t inner) {
  auto* x = static_cast<const T*>(from);
  auto* out = static_cast<T*>(to);
  if (inner == 1) {
    auto fold_line = loops_for<T>().line[kind];
    fold_lines(workers, kind, outer, size, outer * size * int64_t(sizeof(T)), out,
               [&](int64_t line, int64_t begin, int64_t count) { return fold_line(x + line * size + begin, count); });
  } else {
    fold_columns(workers, kind, x, outer, size, inner, out);
  }
}

ffi::Error reduce(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::Result<ffi::AnyBuffer> result, int64_t kind,
                  int64_t outer, int64_t size, int64_t inner) {
  Workers workers(pool);
  if (!has_size(operand, {outer, size, inner}) || !is_array_of(*result, operand.element_type(), {outer, inner}) ||
      kind < kSum || kind > kMinimum) {
    return wrong_sizes("reduce");
  }
  if (!result->element_count()) return ffi::Error::Success();
  const void* x = operand.untyped_data();
  void* y = result->untyped_data();
  return for_number(operand.element_type(), "reduce", [&](auto zero) {
    using T = decltype(zero);
    if (kind == kSum) return reduce_with<Wrapping<T>>(workers, kSum, x, y, outer, size, inner);
    reduce_with<T>(workers, Reduction(kind), x, y, outer, size, inner);
  });
}

ffi::Error vector_dot(ffi::ThreadPool pool, ffi::AnyBuffer left, ffi::AnyBuffer right,
                      ffi::Result<ffi::AnyBuffer> result) {
  Workers workers(pool);
  int64_t size = int64_t(left.element_count());
  if (!is_array_of(right, left.element_type(), {size}) || !is_array_of(*result, left.element_type(), {1})) {
    return wrong_sizes("vector_dot");
  }
  return for_real(left.element_type(), "vector_dot", [&](auto zero) {
    using T = decltype(zero);
    auto *x = static_cast<const T*>(left.untyped_data()), *y = static_cast<const T*>(right.untyped_data());
    auto product = loops_for<T>().product;
    fold_lines(workers, kSum, 1, size, 2 * size * int64_t(sizeof(T)), static_cast<T*>(result->untyped_data()),
               [&](int64_t, int64_t begin, int64_t count) { return product(x + begin, y + begin, count); });
  });
}

template <class T>
struct Found {
  T value;
  int64_t index;
};

template <class T>
inline bool is_nan(T x) {
  return x != x;
}

template <class T>
inline bool is_better(Reduction kind, T x, T y) {
  return is_nan(x) || (kind == kMaximum ? x > y : x < y);
}

// The first best element of a line: block by block, and inside of a block only where something better is in it.
template <class T>
Found<T> find_best(Reduction kind, const T* x, int64_t count) {
  auto fold_line = loops_for<T>().line[kind];
  Found<T> best{x[0], 0};
  for (int64_t start = 0; start < count && !is_nan(best.value); start += kBlock) {
    int64_t size = std::min(kBlock, count - start);
    T top = fold_line(x + start, size);
    if (!is_better(kind, top, best.value)) continue;
    int64_t i = start;
    while (!(is_nan(top) ? is_nan(x[i]) : x[i] == top)) ++i;
    best = {x[i], i};
  }
  return best;
}

template <class T, class Index>
void find_lines(Workers& workers, Reduction kind, const T* x, Index* out, int64_t lines, int64_t size) {
  constexpr int64_t kLong = 8 * kPart;
  int64_t parts = ceil_div(size, kLong), group = std::max<int64_t>(1, kPart / size);
  int64_t bytes = lines * size * int64_t(sizeof(T));
  if (parts == 1) {
    workers.run(ceil_div(lines, group), bytes, [&](int64_t task) {
      for (int64_t line = task * group; line < std::min(lines, (task + 1) * group); ++line) {
        out[line] = Index(find_best(kind, x + line * size, size).index);
      }
    });
    return;
  }
  Scratch<Found<T>> found(lines * parts);
  workers.run(lines * parts, bytes, [&](int64_t task) {
    int64_t begin = task % parts * kLong;
    Found<T> own = find_best(kind, x + task / parts * size + begin, std::min(kLong, size - begin));
    found[task] = {own.value, begin + own.index};
  });
  for (int64_t line = 0; line < lines; ++line) {
    Found<T> best = found[line * parts];
    for (int64_t part = 1; part < parts && !is_nan(best.value); ++part) {
      Found<T> other = found[line * parts + part];
      if (is_better(kind, other.value, best.value)) best = other;
    }
    out[line] = Index(best.index);
  }
}

ffi::Error find_extremum(ffi::ThreadPool pool, ffi::AnyBuffer operand, ffi::Result<ffi::AnyBuffer> result,
                         bool largest, int64_t lines, int64_t size) {
  Workers workers(pool);
  if (!has_size(operand, {lines, size}) || !has_size(*result, {lines})) return wrong_sizes("find_extremum");
  if (!lines || !size) return ffi::Error::Success();
  if (result->element_type() == ffi::DataType::S32 && size > std::numeric_limits<int32_t>::max()) {
    return invalid("find_extremum: the places are not numbers of 32 bits");
  }
  return for_number(operand.element_type(), "find_extremum", [&](auto zero) {
    auto* x = static_cast<const decltype(zero)*>(operand.untyped_data());
    return for_index(result->element_type(), "find_extremum", [&](auto index) {
      auto* out = static_cast<decltype(index)*>(result->untyped_data());
      find_lines(workers, largest ? kMaximum : kMinimum, x, out, lines, size);
    });
  });
}

}  // namespace

PURAX_HANDLER(purax_reduce, reduce,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("kind")
                  .Attr<int64_t>("outer")
                  .Attr<int64_t>("size")
                  .Attr<int64_t>("inner"))

PURAX_HANDLER(purax_vector_dot, vector_dot,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>())

PURAX_HANDLER(purax_find_extremum, find_extremum,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<bool>("largest")
                  .Attr<int64_t>("lines")
                  .Attr<int64_t>("size"))

}  // namespace purax
