// What the kernels share: element types, work in parallel on XLA's own threads, memory for a call.
//
// A kernel is a plain function on memory in row-major order; a handler at the end of each file decodes a call of the
// engine and hands it on. Arrays are seen as (outer, size, inner) around the axis that a kernel works along.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "xla/ffi/api/ffi.h"

#define PURAX_EXPORT __attribute__((visibility("default")))

// Defines the symbol `name` that XLA calls, from a function and its binding. No exception leaves it.
#define PURAX_HANDLER(name, function, binding)                              \
  extern "C" PURAX_EXPORT XLA_FFI_Error* name(XLA_FFI_CallFrame* frame) {   \
    return purax::without_exceptions(frame, [](XLA_FFI_CallFrame* own) {    \
      static auto* handler = (binding).To(function).release();              \
      return handler->Call(own);                                            \
    });                                                                     \
  }

namespace purax {

namespace ffi = xla::ffi;

inline XLA_FFI_Error* make_error(const XLA_FFI_CallFrame* frame, XLA_FFI_Error_Code code, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message, code};
  return frame->api->XLA_FFI_Error_Create(&args);
}

// Calls a handler, and makes an error for XLA of what it throws.
template <class Call>
XLA_FFI_Error* without_exceptions(XLA_FFI_CallFrame* frame, Call call) noexcept {
  try {
    return call(frame);
  } catch (const std::bad_alloc&) {
    return make_error(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "Out of memory: a native kernel got none");
  } catch (const std::length_error&) {
    return make_error(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "Out of memory: a native kernel needs too much");
  } catch (const std::exception& error) {
    return make_error(frame, XLA_FFI_Error_Code_INTERNAL, error.what());
  } catch (...) {
    return make_error(frame, XLA_FFI_Error_Code_INTERNAL, "a native kernel failed");
  }
}

// Memory for `count` objects of `width` bytes, to be given to `std::free`; all of it comes from here or from `new`. Like
// that, it throws `std::bad_alloc`. An alignment is a power of two, 0 is that of any type.
inline void* allocate(int64_t count, int64_t width, int64_t alignment = 0) {
  int64_t bytes;
  if (count < 0 || __builtin_mul_overflow(count, width, &bytes) || bytes > PTRDIFF_MAX - 4096) throw std::bad_alloc();
  bytes = std::max<int64_t>(bytes, 1);
  if (alignment != 0) bytes = (bytes + alignment - 1) / alignment * alignment;
  void* data = alignment != 0 ? std::aligned_alloc(alignment, bytes) : std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

// Memory that is not initialised, and is given back at the end of a scope.
template <class T, int64_t kAlignment = 0>
class Scratch {
 public:
  explicit Scratch(int64_t size) : data_(static_cast<T*>(allocate(size, sizeof(T), kAlignment))) {}
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

// The threads of XLA. The caller takes tasks as well and waits only for those that others have begun, so that a pool
// whose threads are all busy, or all wait here, makes no difference but in speed; nor does a lack of memory to ask them.
class Workers {
 public:
  Workers() : pool_(nullptr), count_(1) {}  // the caller alone
  explicit Workers(ffi::ThreadPool& pool) : pool_(&pool), count_(std::max<int64_t>(pool.num_threads(), 1)) {}

  int64_t count() const { return count_; }

  // Calls `task(i)` for all i below `tasks`, in any order; `cost` is the number of bytes or operations in all. The
  // first that a task throws, the caller throws when all are done: some wait for others, so that none is left out.
  void run(int64_t tasks, int64_t cost, const std::function<void(int64_t)>& task) {
    int64_t helpers = std::min({tasks, count_, 1 + cost / kWorthAThread}) - 1;
    if (helpers <= 0) {
      for (int64_t i = 0; i < tasks; ++i) task(i);
      return;
    }
    auto shared = share(tasks, &task, helpers);
    if (shared == nullptr) {
      for (int64_t i = 0; i < tasks; ++i) task(i);
      return;
    }
    shared->work();
    for (int spins = 0; shared->done.load() < tasks; ++spins) {
      if (spins > 64) std::this_thread::yield();
    }
    if (shared->failure) std::rethrow_exception(shared->failure);
  }

 private:
  struct Shared {
    const int64_t tasks;
    const std::function<void(int64_t)>* const task;  // lives until all tasks are done
    std::atomic<int64_t> next{0}, done{0};
    std::atomic<bool> has_failed{false};
    std::exception_ptr failure;  // to be read when all tasks are done

    Shared(int64_t tasks, const std::function<void(int64_t)>* task) : tasks(tasks), task(task) {}

    // A helper that comes too late finds no task, and then the caller's frame may be gone already.
    void work() noexcept {
      int64_t finished = 0;
      for (int64_t i; (i = next.fetch_add(1)) < tasks; ++finished) {
        try {
          (*task)(i);
        } catch (...) {
          if (!has_failed.exchange(true)) failure = std::current_exception();
        }
      }
      if (finished) done.fetch_add(finished);
    }
  };

  // Asks helpers to share tasks, as many as there is memory for; null if there is none at all.
  std::shared_ptr<Shared> share(int64_t tasks, const std::function<void(int64_t)>* task, int64_t helpers) {
    std::shared_ptr<Shared> shared;
    try {
      shared = std::make_shared<Shared>(tasks, task);
      for (int64_t i = 0; i < helpers; ++i) pool_->Schedule([shared] { shared->work(); });
    } catch (const std::bad_alloc&) {
    }
    return shared;
  }

  static constexpr int64_t kWorthAThread = 1 << 15;
  ffi::ThreadPool* pool_;
  int64_t count_;
};

inline ffi::Error invalid(const char* message) { return ffi::Error(ffi::ErrorCode::kInvalidArgument, message); }

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace purax
