// Joining arrays along an axis. XLA's own kernel is as fast; but it compiles one for each call of a function in
// which arrays are joined, and this one needs no compiler.
#include "checks.h"

namespace purax {
namespace {

constexpr int64_t kBlock = 1 << 18;  // bytes of the result that one task writes

// Writes the bytes from `begin` up to `end` of the result, which is `outer` times a row of each operand.
void write_bytes(const ffi::RemainingArgs& operands, const Scratch<int64_t>& sizes, int64_t row, char* out,
                 int64_t begin, int64_t end) {
  const int64_t count = static_cast<int64_t>(operands.size());
  for (int64_t place = begin; place < end;) {
    int64_t turn = place / row, offset = place % row;
    for (int64_t i = 0; i < count && place < end; ++i) {
      const int64_t size = sizes[i];
      if (offset >= size) {
        offset -= size;
        continue;
      }
      const int64_t length = std::min(size - offset, end - place);
      const char* in = static_cast<const char*>(operands.get<ffi::AnyBuffer>(i)->untyped_data());
      std::memcpy(out + place, in + turn * size + offset, length);
      place += length;
      offset = 0;
    }
  }
}

ffi::Error concatenate(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::Result<ffi::AnyBuffer> result,
                       int64_t outer) {
  Workers workers(pool);
  const int64_t total = static_cast<int64_t>(result->size_bytes());
  if (total == 0) return ffi::Error::Success();
  if (outer <= 0 || total % outer) return wrong_sizes("concatenate");
  Scratch<int64_t> sizes(operands.size());
  int64_t row = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = operands.get<ffi::AnyBuffer>(i);
    if (!operand.has_value()) return operand.error();
    sizes[i] = static_cast<int64_t>(operand->size_bytes()) / outer;
    row += sizes[i];
  }
  if (row != total / outer) return wrong_sizes("concatenate");
  char* out = static_cast<char*>(result->untyped_data());
  workers.run(ceil_div(total, kBlock), total, [&](int64_t i) {
    write_bytes(operands, sizes, row, out, i * kBlock, std::min(total, (i + 1) * kBlock));
  });
  return ffi::Error::Success();
}

}  // namespace

PURAX_HANDLER(
    purax_concatenate, concatenate,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().Ret<ffi::AnyBuffer>().Attr<int64_t>("outer"))

}  // namespace purax
