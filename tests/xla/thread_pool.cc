// The sharing of work among threads, with a pool of our own in place of XLA's, for ThreadSanitizer (tools/sanitize.py):
// several callers at once, tasks that share work again, tasks that throw, sorts and products of matrices.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <vector>

#include "../../purax/native/gemm.h"
#include "../../purax/native/radix.h"

namespace {

namespace ffi = xla::ffi;
using purax::Workers;

constexpr int kThreads = 4;

struct Pool {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<XLA_FFI_Task*, void*>> tasks;
  bool ends = false;
  std::vector<std::thread> threads;

  Pool() {
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([this] { serve(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ends = true;
    }
    changed.notify_all();
    for (std::thread& each : threads) each.join();
  }
  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ends || !tasks.empty(); });
      if (tasks.empty()) return;
      auto [task, data] = tasks.front();
      tasks.pop_front();
      lock.unlock();
      task(data);
      lock.lock();
    }
  }
};

Pool* pool;

XLA_FFI_Error* schedule(XLA_FFI_ThreadPool_Schedule_Args* args) {
  {
    std::lock_guard<std::mutex> lock(pool->mutex);
    pool->tasks.emplace_back(args->task, args->data);
  }
  pool->changed.notify_one();
  return nullptr;
}

XLA_FFI_Error* count_threads(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = kThreads;
  return nullptr;
}

void check(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

constexpr int64_t kMuch = int64_t(1) << 40;  // work that is worth all threads

int64_t sum_below(Workers workers, int64_t count) {
  std::vector<int64_t> parts(count);
  workers.run(count, kMuch, [&](int64_t i) { parts[i] = i; });
  int64_t total = 0;
  for (int64_t each : parts) total += each;
  return total;
}

void share(Workers workers) {
  check(sum_below(workers, 1000) == 499500, "a sum");
  std::vector<int64_t> sums(20);
  workers.run(20, kMuch, [&](int64_t i) { sums[i] = sum_below(workers, 50); });
  for (int64_t each : sums) check(each == 1225, "sums in sums");
}

void fail(Workers workers) {
  std::atomic<int64_t> begun{0};
  bool is_caught = false;
  try {
    workers.run(100, kMuch, [&](int64_t i) {
      ++begun;
      if (i % 7 == 3) throw std::bad_alloc();
    });
  } catch (const std::bad_alloc&) {
    is_caught = true;
  }
  check(is_caught && begun == 100, "tasks that throw");
}

void sort(Workers workers, uint32_t seed) {
  std::vector<uint32_t> a(1 << 17), b(a.size());
  for (uint32_t& each : a) each = seed = seed * 1664525u + 1013904223u;
  const uint32_t* sorted = purax::radix_sort(&workers, a.data(), b.data(), int64_t(a.size()));
  check(std::is_sorted(sorted, sorted + a.size()), "a sort");
}

void multiply(Workers workers, int64_t n) {
  std::vector<float> a(n * n, 1.f), b(n * n, 2.f), c(n * n);
  purax::gemm<float>(workers, n, n, n, purax::Strided<float>{a.data(), n, 1}, purax::Strided<float>{b.data(), 1, n},
                     purax::Plain<float>{c.data(), n});
  for (float each : c) check(each == 2.f * float(n), "a product");
}

}  // namespace

int main() {
  XLA_FFI_Api api = {};
  api.XLA_FFI_ThreadPool_Schedule = schedule;
  api.XLA_FFI_ThreadPool_NumThreads = count_threads;
  Pool own;
  pool = &own;
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&api, caller] {
      ffi::DiagnosticEngine diagnostic;
      ffi::ThreadPool threads = *ffi::CtxDecoding<ffi::ThreadPool>::Decode(&api, nullptr, diagnostic);
      for (int turn = 0; turn < 20; ++turn) {
        share(Workers(threads));
        fail(Workers(threads));
        sort(Workers(threads), caller + 3 * turn);
        multiply(Workers(threads), 130);
      }
    });
  }
  for (std::thread& each : callers) each.join();
  std::puts("the pool shares work well");
  return 0;
}
