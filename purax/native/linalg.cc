// The calls of XLA for factorizations and triangular systems of many small matrices: see `small.h`.
#include "small.h"
#include "types.h"

namespace purax {
namespace {

// Calls `task(kernels, first matrix, count, space)` for groups of matrices, with `space` vectors of memory for each.
template <class T, class Task>
void for_groups(Workers& workers, int64_t batch, int64_t cost, int64_t space, const Task& task) {
  const SmallKernels<T>& kernels = small_kernels<T>();
  int64_t lanes = kernels.lanes;
  workers.run(ceil_div(batch, lanes), batch * cost, [&](int64_t group) {
    Scratch<T, 64> memory(space * lanes);  // where vectors may lie
    task(kernels, group * lanes, std::min(lanes, batch - group * lanes), memory.get());
  });
}

template <class T>
const T* in(const ffi::AnyBuffer& x) { return static_cast<const T*>(x.untyped_data()); }

template <class T>
T* out(ffi::Result<ffi::AnyBuffer>& y) { return static_cast<T*>(y->untyped_data()); }

ffi::Error call_cholesky(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, int64_t batch,
                         int64_t n) {
  batch = leading_count(x, batch, {n, n});
  Workers workers(pool);
  const ffi::DataType dtype = x.element_type();
  if (!has_size(x, {batch, n, n}) || !is_array_of(*y, dtype, {batch, n, n})) {
    return wrong_sizes("cholesky");
  }
  return for_real(dtype, "cholesky", [&](auto zero) {
    using T = decltype(zero);
    for_groups<T>(workers, batch, n * n * n, SmallSpace::square(n), [&](auto& own, int64_t at, int64_t count, T* space) {
      own.cholesky(in<T>(x) + at * n * n, count, n, out<T>(y) + at * n * n, space);
    });
  });
}

ffi::Error call_lu(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y,
                   ffi::Result<ffi::AnyBuffer> pivots, ffi::Result<ffi::AnyBuffer> permutation, int64_t batch,
                   int64_t n) {
  batch = leading_count(x, batch, {n, n});
  Workers workers(pool);
  const ffi::DataType dtype = x.element_type();
  if (!has_size(x, {batch, n, n}) || !is_array_of(*y, dtype, {batch, n, n}) ||
      !is_array_of(*pivots, ffi::DataType::S32, {batch, n}) ||
      !is_array_of(*permutation, ffi::DataType::S32, {batch, n})) {
    return wrong_sizes("lu");
  }
  return for_real(dtype, "lu", [&](auto zero) {
    using T = decltype(zero);
    for_groups<T>(workers, batch, n * n * n, SmallSpace::square(n), [&](auto& own, int64_t at, int64_t count, T* space) {
      own.lu(in<T>(x) + at * n * n, count, n, out<T>(y) + at * n * n, out<int32_t>(pivots) + at * n,
             out<int32_t>(permutation) + at * n, space);
    });
  });
}

ffi::Error call_triangular(ffi::ThreadPool pool, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> y,
                           int64_t batch, int64_t n, int64_t k, bool lower, bool transpose, bool unit, bool by_rows) {
  batch = leading_count(a, batch, {n, n});
  Workers workers(pool);
  const ffi::DataType dtype = a.element_type();
  if (!has_size(a, {batch, n, n}) || !is_array_of(b, dtype, {batch, n, k}) || !is_array_of(*y, dtype, {batch, n, k})) {
    return wrong_sizes("triangular");
  }
  return for_real(dtype, "triangular", [&](auto zero) {
    using T = decltype(zero);
    for_groups<T>(workers, batch, n * n * (k + 1), SmallSpace::triangular(n, k),
                  [&](auto& own, int64_t at, int64_t count, T* space) {
                    own.triangular(in<T>(a) + at * n * n, in<T>(b) + at * n * k, count, n, k, lower, transpose, unit,
                                   by_rows, out<T>(y) + at * n * k, space);
                  });
  });
}

ffi::Error call_qr(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> q, ffi::Result<ffi::AnyBuffer> r,
                   int64_t batch, int64_t rows, int64_t columns, int64_t inner) {
  batch = leading_count(x, batch, {rows, columns});
  Workers workers(pool);
  const ffi::DataType dtype = x.element_type();
  if (!has_size(x, {batch, rows, columns}) || !is_array_of(*q, dtype, {batch, rows, inner}) ||
      !is_array_of(*r, dtype, {batch, inner, columns}) || inner < std::min(rows, columns) || inner > rows) {
    return wrong_sizes("qr");
  }
  return for_real(dtype, "qr", [&](auto zero) {
    using T = decltype(zero);
    for_groups<T>(workers, batch, 4 * rows * columns * inner, SmallSpace::qr(rows, columns, inner),
                  [&](auto& own, int64_t at, int64_t count, T* space) {
                    own.qr(in<T>(x) + at * rows * columns, count, rows, columns, inner, out<T>(q) + at * rows * inner,
                           out<T>(r) + at * inner * columns, space);
                  });
  });
}

ffi::Error call_eigh(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> v,
                     ffi::Result<ffi::AnyBuffer> w, int64_t batch, int64_t n, bool lower) {
  batch = leading_count(x, batch, {n, n});
  Workers workers(pool);
  const ffi::DataType dtype = x.element_type();
  if (!has_size(x, {batch, n, n}) || !is_array_of(*v, dtype, {batch, n, n}) || !is_array_of(*w, dtype, {batch, n})) {
    return wrong_sizes("eigh");
  }
  return for_real(dtype, "eigh", [&](auto zero) {
    using T = decltype(zero);
    for_groups<T>(workers, batch, 20 * n * n * n, SmallSpace::eigh(n),
                  [&](auto& own, int64_t at, int64_t count, T* space) {
                    own.eigh(in<T>(x) + at * n * n, count, n, lower, out<T>(v) + at * n * n, out<T>(w) + at * n, space);
                  });
  });
}

// Singular values, and, if there are three results, vectors.
ffi::Error call_svd(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::RemainingRets results, int64_t batch, int64_t rows,
                    int64_t columns, int64_t left, int64_t right) {
  batch = leading_count(x, batch, {rows, columns});
  Workers workers(pool);
  const ffi::DataType dtype = x.element_type();
  const int64_t fewest = std::min(rows, columns);
  if (!has_size(x, {batch, rows, columns}) || (results.size() != 1 && results.size() != 3) || left < fewest ||
      left > rows || right < fewest || right > columns) {
    return wrong_sizes("svd");
  }
  void* data[3] = {};
  const int64_t sizes[3] = {fewest, count_of({rows, left}), count_of({right, columns})};
  for (size_t i = 0; i < results.size(); ++i) {
    auto result = results.get<ffi::AnyBuffer>(i);
    if (!result || !is_array_of(**result, dtype, {batch, sizes[i]})) return wrong_sizes("svd");
    data[i] = (*result)->untyped_data();
  }
  return for_real(dtype, "svd", [&](auto zero) {
    using T = decltype(zero);
    T *s = static_cast<T*>(data[0]), *u = static_cast<T*>(data[1]), *vt = static_cast<T*>(data[2]);
    int64_t least = std::min(rows, columns);
    for_groups<T>(workers, batch, 30 * rows * columns * least, SmallSpace::svd(rows, columns),
                  [&](auto& own, int64_t at, int64_t count, T* space) {
                    own.svd(in<T>(x) + at * rows * columns, count, rows, columns, left, right, s + at * least,
                            u ? u + at * rows * left : nullptr, vt ? vt + at * right * columns : nullptr, space);
                  });
  });
}

}  // namespace

PURAX_HANDLER(purax_cholesky, call_cholesky,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("batch")
                  .Attr<int64_t>("n"))

PURAX_HANDLER(purax_lu, call_lu,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("batch")
                  .Attr<int64_t>("n"))

PURAX_HANDLER(purax_triangular_solve, call_triangular,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("batch")
                  .Attr<int64_t>("n")
                  .Attr<int64_t>("k")
                  .Attr<bool>("lower")
                  .Attr<bool>("transpose")
                  .Attr<bool>("unit")
                  .Attr<bool>("by_rows"))

PURAX_HANDLER(purax_qr, call_qr,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("batch")
                  .Attr<int64_t>("rows")
                  .Attr<int64_t>("columns")
                  .Attr<int64_t>("inner"))

PURAX_HANDLER(purax_eigh, call_eigh,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Ret<ffi::AnyBuffer>()
                  .Attr<int64_t>("batch")
                  .Attr<int64_t>("n")
                  .Attr<bool>("lower"))

PURAX_HANDLER(purax_svd, call_svd,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::AnyBuffer>()
                  .RemainingRets()
                  .Attr<int64_t>("batch")
                  .Attr<int64_t>("rows")
                  .Attr<int64_t>("columns")
                  .Attr<int64_t>("left")
                  .Attr<int64_t>("right"))

// How many bytes of matrices are worked on side by side: what Jacobi's methods gain depends on it.
extern "C" PURAX_EXPORT int64_t purax_vector_bytes() { return small_kernels<float>().lanes * sizeof(float); }

}  // namespace purax
