// The streams of random words of Threefry-2x32-20 keys (purax/primitives/random/threefry.py says what they are), for any count.
//
// A block of counters is encrypted in vectors; several of them run side by side, since each round waits for the last.
#include "checks.h"
#include "processor.h"

#pragma GCC diagnostic ignored "-Wpsabi"

#define PURAX_INLINE inline __attribute__((always_inline))

namespace purax {
namespace {

// How a stream is counted: `count` words, the second half of which are the second words of the blocks; pairs of words,
// one for each of `count` counters; or those pairs, each joined by exclusive or.
enum Stream { kClassic, kPairs, kJoined };

constexpr int kLanes = 16, kSide = 4, kBlock = kLanes * kSide;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr uint32_t kParity = 0x1BD11BDA;

typedef uint32_t Words __attribute__((vector_size(kLanes * 4)));

// Encrypts a block of pairs in place.
PURAX_INLINE void encrypt(const uint32_t* key, uint32_t* first, uint32_t* second) {
  const uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  Words x0[kSide], x1[kSide];
  std::memcpy(x0, first, sizeof(x0));
  std::memcpy(x1, second, sizeof(x1));
  for (int s = 0; s < kSide; ++s) x0[s] += schedule[0], x1[s] += schedule[1];
#pragma GCC unroll 5
  for (int step = 0; step < 5; ++step) {
#pragma GCC unroll 4
    for (int turn = 0; turn < 4; ++turn) {
      const int bits = kRotations[step % 2][turn];
#pragma GCC unroll 4
      for (int s = 0; s < kSide; ++s) {
        x0[s] += x1[s];
        x1[s] = ((x1[s] << bits) | (x1[s] >> (32 - bits))) ^ x0[s];
      }
    }
    for (int s = 0; s < kSide; ++s) {
      x0[s] += schedule[(step + 1) % 3];
      x1[s] += schedule[(step + 2) % 3] + uint32_t(step + 1);
    }
  }
  std::memcpy(first, x0, sizeof(x0));
  std::memcpy(second, x1, sizeof(x1));
}

// The blocks of counters from `begin` to `end` of one key's stream of `count`, written to where they belong in `out`.
PURAX_INLINE void draw(Stream stream, const uint32_t* key, int64_t begin, int64_t end, int64_t count, uint32_t* out) {
  alignas(64) uint32_t first[kBlock], second[kBlock];
  const int64_t half = (count + 1) / 2;
  for (int64_t start = begin; start < end; start += kBlock) {
    const int64_t size = std::min<int64_t>(kBlock, end - start);
    for (int i = 0; i < kBlock; ++i) {
      const uint64_t counter = uint64_t(start) + uint64_t(i);
      first[i] = stream == kClassic ? uint32_t(counter) : uint32_t(counter >> 32);
      second[i] = stream == kClassic ? uint32_t(counter + uint64_t(half)) : uint32_t(counter);
    }
    if (stream == kClassic && count % 2 && start + size == half) second[size - 1] = 0;
    encrypt(key, first, second);
    if (stream == kClassic) {
      std::memcpy(out + start, first, size * 4);
      std::memcpy(out + half + start, second, std::min(size, count - half - start) * 4);
    } else if (stream == kJoined) {
      for (int i = 0; i < kBlock; ++i) first[i] ^= second[i];
      std::memcpy(out + start, first, size * 4);
    } else {
      for (int64_t i = 0; i < size; ++i) out[2 * (start + i)] = first[i], out[2 * (start + i) + 1] = second[i];
    }
  }
}

using Draw = void (*)(Stream, const uint32_t*, int64_t, int64_t, int64_t, uint32_t*);

void draw_portable(Stream stream, const uint32_t* key, int64_t begin, int64_t end, int64_t count, uint32_t* out) {
  draw(stream, key, begin, end, count, out);
}

#ifdef PURAX_DISPATCHES
__attribute__((target("avx2"))) void draw_avx2(Stream stream, const uint32_t* key, int64_t begin, int64_t end,
                                               int64_t count, uint32_t* out) {
  draw(stream, key, begin, end, count, out);
}

__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512"))) void draw_avx512(
    Stream stream, const uint32_t* key, int64_t begin, int64_t end, int64_t count, uint32_t* out) {
  draw(stream, key, begin, end, count, out);
}
#endif

Draw chosen() {
#ifdef PURAX_DISPATCHES
  if (instructions() >= Instructions::kAvx512) return draw_avx512;
  if (instructions() >= Instructions::kAvx2) return draw_avx2;
#endif
  return draw_portable;
}

ffi::Error threefry(ffi::ThreadPool pool, ffi::Buffer<ffi::DataType::U32> keys,
                    ffi::Result<ffi::Buffer<ffi::DataType::U32>> out, int64_t stream, int64_t count) {
  Workers workers(pool);
  const int64_t number = int64_t(keys.element_count()) / 2;
  if (stream < kClassic || stream > kJoined || keys.element_count() % 2 ||
      !has_size(*out, {number, count, stream == kPairs ? 2 : 1})) {
    return wrong_sizes("threefry");
  }
  if (!out->element_count()) return ffi::Error::Success();
  const Draw work = chosen();
  const int64_t blocks = stream == kClassic ? (count + 1) / 2 : count;  // of each key
  const int64_t words = int64_t(out->element_count()) / number;         // of each key
  const int64_t share = int64_t(1) << 13, parts = ceil_div(blocks, share);
  const uint32_t* from = keys.typed_data();
  uint32_t* to = out->typed_data();
  workers.run(number * parts, number * blocks * 16, [&](int64_t task) {
    const int64_t key = task / parts, part = task % parts;
    work(Stream(stream), from + 2 * key, part * share, std::min(blocks, (part + 1) * share), count, to + key * words);
  });
  return ffi::Error::Success();
}

}  // namespace

PURAX_HANDLER(purax_threefry, threefry,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .Arg<ffi::Buffer<ffi::DataType::U32>>()
                  .Ret<ffi::Buffer<ffi::DataType::U32>>()
                  .Attr<int64_t>("stream")
                  .Attr<int64_t>("count"))

}  // namespace purax
