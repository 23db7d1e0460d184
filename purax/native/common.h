// What the kernels share: element types, work in parallel on the engine's own threads, memory for a call.
//
// A kernel is a plain function on memory in row-major order; a handler at the end of each file decodes a call of the
// engine and hands it on. Arrays are seen as (outer, size, inner) around the axis that a kernel works along.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <type_traits>

#include "xla/ffi/api/ffi.h"

#define PURAX_EXPORT __attribute__((visibility("default")))

// Defines the symbol `name` that the engine calls, from a function and its binding.
#define PURAX_HANDLER(name, function, binding)                        \
  extern "C" PURAX_EXPORT XLA_FFI_Error* name(XLA_FFI_CallFrame* frame); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, binding);

namespace purax {

namespace ffi = xla::ffi;

// Memory that is not initialised, and is given back at the end of a scope.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size) : data_(static_cast<T*>(std::malloc(std::max<int64_t>(size, 1) * sizeof(T)))) {}
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

// The threads of the engine. The caller takes tasks as well and waits only for those that others have begun, so that a
// pool whose threads are all busy, or all wait here, makes no difference but in speed.
class Workers {
 public:
  Workers() : pool_(nullptr), count_(1) {}  // the caller alone
  explicit Workers(ffi::ThreadPool& pool) : pool_(&pool), count_(std::max<int64_t>(pool.num_threads(), 1)) {}

  int64_t count() const { return count_; }

  // Calls `task(i)` for all i below `tasks`, in any order; `cost` is the number of bytes or operations in all.
  void run(int64_t tasks, int64_t cost, const std::function<void(int64_t)>& task) {
    int64_t helpers = std::min({tasks, count_, 1 + cost / kWorthAThread}) - 1;
    if (helpers <= 0) {
      for (int64_t i = 0; i < tasks; ++i) task(i);
      return;
    }
    struct Shared {
      std::atomic<int64_t> next{0}, done{0};
    };
    auto shared = std::make_shared<Shared>();
    // A helper that comes too late finds no task, and then the caller's frame may be gone already.
    std::function<void()> work = [shared, tasks, job = &task] {
      int64_t finished = 0;
      for (int64_t i; (i = shared->next.fetch_add(1)) < tasks; ++finished) (*job)(i);
      if (finished) shared->done.fetch_add(finished);
    };
    for (int64_t i = 0; i < helpers; ++i) pool_->Schedule(std::function<void()>(work));
    work();
    for (int spins = 0; shared->done.load() < tasks; ++spins) {
      if (spins > 64) std::this_thread::yield();
    }
  }

 private:
  static constexpr int64_t kWorthAThread = 1 << 15;
  ffi::ThreadPool* pool_;
  int64_t count_;
};

inline ffi::Error invalid(const char* message) { return ffi::Error(ffi::ErrorCode::kInvalidArgument, message); }

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace purax
