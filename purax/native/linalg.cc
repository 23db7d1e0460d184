// Factorizations and triangular systems of many small matrices at once.
//
// A task takes as many matrices as a vector has lanes and turns them so that element (i, j) of all of them is one vector.
// What LAPACK does element by element is then done for all matrices of the task.
#include <cmath>

#include "common.h"

namespace purax {
namespace {

template <class T>
struct Lanes {
  static constexpr int count = 64 / sizeof(T);
  typedef T vector __attribute__((vector_size(64)));
};

// Reads element (i, j) of `count` matrices of rows×columns, `transposed` or not, into vectors; other lanes get 0.
template <class T>
void gather(const T* x, int64_t count, int64_t rows, int64_t columns, bool transposed, typename Lanes<T>::vector* to) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      auto& own = to[transposed ? j * rows + i : i * columns + j];
      for (int lane = 0; lane < Lanes<T>::count; ++lane) {
        own[lane] = lane < count ? x[(lane * rows + i) * columns + j] : T(0);
      }
    }
  }
}

template <class T>
void scatter(const typename Lanes<T>::vector* from, int64_t count, int64_t rows, int64_t columns, bool transposed, T* x) {
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        x[(lane * rows + i) * columns + j] = from[transposed ? j * rows + i : i * columns + j][lane];
      }
    }
  }
}

// Calls `task(first matrix, count)` for groups of matrices.
template <class T>
void for_groups(Workers& workers, int64_t batch, int64_t cost, const std::function<void(int64_t, int64_t)>& task) {
  constexpr int64_t lanes = Lanes<T>::count;
  workers.run(ceil_div(batch, lanes), batch * cost,
              [&](int64_t group) { task(group * lanes, std::min(lanes, batch - group * lanes)); });
}

template <class T>
class Vectors {
 public:
  using V = typename Lanes<T>::vector;
  explicit Vectors(int64_t size) : data_(static_cast<V*>(std::aligned_alloc(64, 64 * std::max<int64_t>(size, 1)))) {}
  ~Vectors() { std::free(data_); }
  Vectors(const Vectors&) = delete;
  Vectors& operator=(const Vectors&) = delete;
  V* get() { return data_; }

 private:
  V* data_;
};

template <class T>
void cholesky(Workers& workers, const T* x, T* y, int64_t batch, int64_t n) {
  using V = typename Lanes<T>::vector;
  for_groups<T>(workers, batch, n * n * n, [&](int64_t first, int64_t count) {
    Vectors<T> memory(n * n);
    V* a = memory.get();
    gather(x + first * n * n, count, n, n, false, a);
    bool failed[Lanes<T>::count] = {};
    for (int64_t k = 0; k < n; ++k) {
      V root{};
      for (int lane = 0; lane < Lanes<T>::count; ++lane) {
        T pivot = a[k * n + k][lane];
        failed[lane] |= !(pivot > 0);
        root[lane] = std::sqrt(pivot);
      }
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
    scatter(a, count, n, n, false, y + first * n * n);
    for (int64_t lane = 0; lane < count; ++lane) {
      if (!failed[lane]) continue;
      T* own = y + (first + lane) * n * n;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) own[i * n + j] = std::numeric_limits<T>::quiet_NaN();
      }
    }
  });
}

template <class T>
void lu(Workers& workers, const T* x, T* y, int32_t* pivots, int32_t* permutation, int64_t batch, int64_t n) {
  using V = typename Lanes<T>::vector;
  for_groups<T>(workers, batch, n * n * n, [&](int64_t first, int64_t count) {
    Vectors<T> memory(n * n);
    V* a = memory.get();
    gather(x + first * n * n, count, n, n, false, a);
    for (int64_t lane = 0; lane < count; ++lane) {
      for (int64_t i = 0; i < n; ++i) permutation[(first + lane) * n + i] = int32_t(i);
    }
    for (int64_t k = 0; k < n; ++k) {
      V inverse{};
      for (int64_t lane = 0; lane < count; ++lane) {
        int64_t best = k;
        T largest = std::abs(a[k * n + k][lane]);
        for (int64_t i = k + 1; i < n; ++i) {
          T own = std::abs(a[i * n + k][lane]);
          if (own > largest) {
            largest = own;
            best = i;
          }
        }
        pivots[(first + lane) * n + k] = int32_t(best);
        if (best != k) {
          int32_t* order = permutation + (first + lane) * n;
          std::swap(order[k], order[best]);
          for (int64_t j = 0; j < n; ++j) {
            T own = a[k * n + j][lane];
            a[k * n + j][lane] = a[best * n + j][lane];
            a[best * n + j][lane] = own;
          }
        }
        T pivot = a[k * n + k][lane];
        inverse[lane] = pivot == 0 ? T(1) : pivot;  // as LAPACK, which goes on
      }
      for (int64_t lane = count; lane < Lanes<T>::count; ++lane) inverse[lane] = T(1);
      for (int64_t i = k + 1; i < n; ++i) {
        V factor = a[i * n + k] / inverse;
        a[i * n + k] = factor;
        for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      }
    }
    scatter(a, count, n, n, false, y + first * n * n);
  });
}

// Solves op(a) x = b, or x op(a) = b as op(a)ᵀ xᵀ = bᵀ. `by_rows` says that b holds rows of unknowns, the latter case.
template <class T>
void triangular(Workers& workers, const T* a, const T* b, T* y, int64_t batch, int64_t n, int64_t k, bool lower,
                bool transpose, bool unit, bool by_rows) {
  using V = typename Lanes<T>::vector;
  bool is_turned = transpose != by_rows, is_lower = lower != is_turned;
  for_groups<T>(workers, batch, n * n * (k + 1), [&](int64_t first, int64_t count) {
    Vectors<T> memory(n * n + n * k);
    V *m = memory.get(), *x = m + n * n;
    gather(a + first * n * n, count, n, n, is_turned, m);
    int64_t rows = by_rows ? k : n, columns = by_rows ? n : k;
    gather(b + first * n * k, count, rows, columns, by_rows, x);
    for (int64_t step = 0; step < n; ++step) {
      int64_t i = is_lower ? step : n - 1 - step;
      if (!unit) {
        V diagonal = m[i * n + i];
        for (int64_t lane = count; lane < Lanes<T>::count; ++lane) diagonal[lane] = T(1);
        for (int64_t j = 0; j < k; ++j) x[i * k + j] /= diagonal;
      }
      int64_t begin = is_lower ? i + 1 : 0, end = is_lower ? n : i;
      for (int64_t r = begin; r < end; ++r) {
        V factor = m[r * n + i];
        for (int64_t j = 0; j < k; ++j) x[r * k + j] -= factor * x[i * k + j];
      }
    }
    scatter(x, count, rows, columns, by_rows, y + first * n * k);
  });
}

template <class F>
ffi::Error for_real(ffi::DataType dtype, const F& run) {
  if (dtype == ffi::DataType::F32) {
    run(float());
  } else if (dtype == ffi::DataType::F64) {
    run(double());
  } else {
    return invalid("linear algebra of a dtype without a kernel");
  }
  return ffi::Error::Success();
}

ffi::Error call_cholesky(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, int64_t batch,
                         int64_t n) {
  Workers workers(pool);
  return for_real(x.element_type(), [&](auto zero) {
    using T = decltype(zero);
    cholesky(workers, static_cast<const T*>(x.untyped_data()), static_cast<T*>(y->untyped_data()), batch, n);
  });
}

ffi::Error call_lu(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y,
                   ffi::Result<ffi::AnyBuffer> pivots, ffi::Result<ffi::AnyBuffer> permutation, int64_t batch,
                   int64_t n) {
  Workers workers(pool);
  return for_real(x.element_type(), [&](auto zero) {
    using T = decltype(zero);
    lu(workers, static_cast<const T*>(x.untyped_data()), static_cast<T*>(y->untyped_data()),
       static_cast<int32_t*>(pivots->untyped_data()), static_cast<int32_t*>(permutation->untyped_data()), batch, n);
  });
}

ffi::Error call_triangular(ffi::ThreadPool pool, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> y,
                           int64_t batch, int64_t n, int64_t k, bool lower, bool transpose, bool unit, bool by_rows) {
  Workers workers(pool);
  return for_real(a.element_type(), [&](auto zero) {
    using T = decltype(zero);
    triangular(workers, static_cast<const T*>(a.untyped_data()), static_cast<const T*>(b.untyped_data()),
               static_cast<T*>(y->untyped_data()), batch, n, k, lower, transpose, unit, by_rows);
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

}  // namespace purax
