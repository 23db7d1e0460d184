// Runs a program on rows: normalisations, softmax, activations, updates of weights.
//
// The engine needs a compiled kernel for each loop, some 15 ms of compilation each, and nothing is compiled here. A few
// rows at a time go through the whole program, so that what is computed between stays in the cache. The program is a
// list of operations on slots: operands, results, scratch memory and constants. One call may run it on several sets of
// operands, each with its own number of rows.
#include <vector>

#include "row_program.h"

namespace purax {
namespace {

constexpr int64_t kBlock = 2048;  // numbers of an operand that go through the program at once
constexpr int64_t kMostTasks = 64;

enum Source : int64_t { kOperand, kResult, kScratch, kConstant };
enum Extent : int64_t { kMatrix, kPerRow, kOneRow, kScalar };

struct Slot {
  int64_t source, index, extent;
};

struct Instruction {
  int64_t op, out, a, b, c;
};

// Numbers that are read as records where they lie.
template <class T>
struct Records {
  const T* data = nullptr;
  int64_t size = 0;

  bool read(ffi::Span<const int64_t> numbers) {
    constexpr size_t kEach = sizeof(T) / sizeof(int64_t);
    data = reinterpret_cast<const T*>(numbers.begin());
    size = static_cast<int64_t>(numbers.size() / kEach);
    return numbers.size() % kEach == 0;
  }
  const T& operator[](int64_t i) const { return data[i]; }
  const T* begin() const { return data; }
  const T* end() const { return data + size; }
};

class Program {
 public:
  int64_t width = 0, scratch_count = 0;
  Records<Slot> slots;
  Records<Instruction> code;
  const void** operands = nullptr;
  bool* is_bool = nullptr;  // of each operand
  void** results = nullptr;
  float* constants = nullptr;  // by slot
  int64_t operands_each = 0, results_each = 0;  // of a set

  // Rows that go through at once, and those of a task; neither depends on the number of threads.
  int64_t block_rows() const { return std::max<int64_t>(1, kBlock / std::max<int64_t>(width, 1)); }
  int64_t task_rows(int64_t rows) const { return block_rows() * ceil_div(ceil_div(rows, block_rows()), kMostTasks); }
  int64_t tasks(int64_t rows) const { return rows > 0 && width > 0 ? ceil_div(rows, task_rows(rows)) : 0; }

  int64_t extent_width(int64_t extent) const { return extent == kMatrix || extent == kOneRow ? width : 1; }
  int64_t extent_step(int64_t extent) const { return extent == kMatrix ? width : extent == kPerRow ? 1 : 0; }

  // The rows from `first` up to `last` of set `set`. Sums over rows go to `sums`, one row for each instruction that takes
  // such a sum.
  void run(int64_t set, int64_t first, int64_t last, float* sums) const {
    const int64_t first_operand = set * operands_each, first_result = set * results_each;
    static thread_local std::vector<float> memory;
    const int64_t size = ceil_div(block_rows() * width, 16) * 16;
    memory.resize(std::max<size_t>(memory.size(), scratch_count * size + 16));
    float* scratch = memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) / sizeof(float) % 16) % 16;
    const RowLoop* loops = row_loops();
    for (int64_t row = first; row < last; row += block_rows()) {
      const int64_t count = std::min(block_rows(), last - row);
      const auto place = [&](int64_t number) -> float* {
        const Slot& slot = slots[number];
        const int64_t offset = row * extent_step(slot.extent);
        switch (slot.source) {
          case kOperand: return const_cast<float*>(static_cast<const float*>(operands[first_operand + slot.index])) + offset;
          case kResult: return static_cast<float*>(results[first_result + slot.index]) + offset;
          case kScratch: return scratch + slot.index * size;
          default: return &constants[number];
        }
      };
      float* sum = sums;
      for (const Instruction& each : code) {
        const RowOp op = static_cast<RowOp>(each.op);
        const int64_t extent = slots[each.out].extent;
        if (op == RowOp::kLoad) {
          load(place(each.out), extent_width(extent), first_operand + each.a, each, row, count);
          continue;
        }
        if (op == RowOp::kStoreBool) {
          store(static_cast<uint8_t*>(results[first_result + slots[each.out].index]) + row * extent_step(extent), place(each.a),
                count * extent_width(extent));
          continue;
        }
        // How far a row of the result reaches: all of it, or one number.
        const bool reduces = op == RowOp::kRowSum || op == RowOp::kRowMax || op == RowOp::kColumnSum;
        const int64_t own = reduces ? width : extent_width(extent);
        const auto operand = [&](int64_t number) -> RowOperand {
          if (number < 0) return {nullptr, 0, true};
          const int64_t step = extent_step(slots[number].extent);
          return {place(number), step, extent_width(slots[number].extent) != own};
        };
        float* out = place(each.out);
        if (op == RowOp::kColumnSum) {
          out = sum;
          sum += width;
        }
        RowOperand a = operand(each.a), b = operand(each.b), c = operand(each.c);
        if (own == 1) {  // numbers of rows next to each other are a line
          for (RowOperand* each_operand : {&a, &b, &c}) each_operand->single = each_operand->step == 0;
        }
        loops[each.op](out, a, b, c, count, own);
      }
    }
  }

 private:
  // Rows (row / each.b) % each.c of an operand.
  void load(float* out, int64_t own, int64_t operand, const Instruction& each, int64_t row, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = (row + i) / each.b % each.c * own;
      if (is_bool[operand]) {
        const uint8_t* line = static_cast<const uint8_t*>(operands[operand]) + from;
        for (int64_t j = 0; j < own; ++j) out[i * own + j] = line[j] ? 1.f : 0.f;
      } else {
        std::memcpy(out + i * own, static_cast<const float*>(operands[operand]) + from, own * sizeof(float));
      }
    }
  }

  static void store(uint8_t* out, const float* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = from[i] != 0.f;
  }
};

struct Task {
  int64_t set, first, last;
};

ffi::Error run_rows(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                    ffi::Span<const int64_t> rows, int64_t width, int64_t scratch, ffi::Span<const int64_t> slots,
                    ffi::Span<const int64_t> code) {
  Program program;
  program.width = width;
  program.scratch_count = scratch;
  const int64_t sets = static_cast<int64_t>(rows.size()), operand_count = static_cast<int64_t>(operands.size()),
                result_count = static_cast<int64_t>(results.size());
  if (!program.slots.read(slots) || !program.code.read(code) || sets == 0 || operand_count % sets ||
      result_count % sets) {
    return invalid("a program on rows that is cut off");
  }
  program.operands_each = operand_count / sets;
  program.results_each = result_count / sets;
  int64_t count = 0, total_rows = 0, sums = 0;
  for (int64_t set = 0; set < sets; ++set) {
    count += program.tasks(rows.begin()[set]);
    total_rows += rows.begin()[set];
  }
  for (const Instruction& each : program.code) sums += static_cast<RowOp>(each.op) == RowOp::kColumnSum ? width : 0;
  // One piece of memory for all, since a call on small arrays takes little more than the time of getting it.
  Scratch<char> memory(operand_count * sizeof(void*) + result_count * sizeof(void*) + count * sizeof(Task) +
                       (program.slots.size + count * sums) * sizeof(float) + operand_count);
  char* place = memory.get();
  const auto take = [&](auto*& pointer, int64_t size) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(place);
    place += size * sizeof(*pointer);
  };
  Task* tasks;
  float* partial;
  take(program.operands, operand_count);
  take(program.results, result_count);
  take(tasks, count);
  take(program.constants, program.slots.size);
  take(partial, count * sums);
  take(program.is_bool, operand_count);
  for (int64_t i = 0; i < operand_count; ++i) {
    auto operand = operands.get<ffi::AnyBuffer>(i);
    if (!operand.has_value()) return operand.error();
    program.operands[i] = operand->untyped_data();
    program.is_bool[i] = operand->element_type() == ffi::DataType::PRED;
  }
  for (int64_t i = 0; i < result_count; ++i) {
    auto result = results.get<ffi::AnyBuffer>(i);
    if (!result.has_value()) return result.error();
    program.results[i] = (*result)->untyped_data();
  }
  for (int64_t i = 0; i < program.slots.size; ++i) {
    const int32_t bits = static_cast<int32_t>(program.slots[i].index);
    if (program.slots[i].source == kConstant) std::memcpy(&program.constants[i], &bits, 4);
  }
  Task* task = tasks;
  for (int64_t set = 0; set < sets; ++set) {
    const int64_t own = rows.begin()[set], step = own > 0 ? program.task_rows(own) : 0;
    for (int64_t i = 0; i < program.tasks(own); ++i) *task++ = {set, i * step, std::min(own, (i + 1) * step)};
  }
  std::fill(partial, partial + count * sums, 0.f);
  const int64_t cost = total_rows * width * program.code.size / 4;
  Workers(pool).run(count, cost, [&](int64_t i) {
    program.run(tasks[i].set, tasks[i].first, tasks[i].last, partial + i * sums);
  });
  int64_t offset = 0;
  for (const Instruction& each : program.code) {
    if (static_cast<RowOp>(each.op) != RowOp::kColumnSum) continue;
    for (int64_t set = 0; set < sets; ++set) {
      const int64_t result = set * program.results_each + program.slots[each.out].index;
      float* out = static_cast<float*>(program.results[result]);
      std::fill(out, out + width, 0.f);
      for (int64_t i = 0; i < count; ++i) {
        const float* from = partial + i * sums + offset;
        for (int64_t j = 0; tasks[i].set == set && j < width; ++j) out[j] += from[j];
      }
    }
    offset += width;
  }
  return ffi::Error::Success();
}

}  // namespace

PURAX_HANDLER(purax_row_program, run_rows,
              ffi::Ffi::Bind()
                  .Ctx<ffi::ThreadPool>()
                  .RemainingArgs()
                  .RemainingRets()
                  .Attr<ffi::Span<const int64_t>>("rows")
                  .Attr<int64_t>("width")
                  .Attr<int64_t>("scratch")
                  .Attr<ffi::Span<const int64_t>>("slots")
                  .Attr<ffi::Span<const int64_t>>("code"))

}  // namespace purax
