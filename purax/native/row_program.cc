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

template <class T>
bool read_records(ffi::Span<const int64_t> numbers, std::vector<T>& out) {
  if (numbers.size() * sizeof(int64_t) % sizeof(T)) return false;
  out.resize(numbers.size() * sizeof(int64_t) / sizeof(T));
  if (!out.empty()) std::memcpy(static_cast<void*>(out.data()), numbers.begin(), numbers.size() * sizeof(int64_t));
  return true;
}

class Program {
 public:
  int64_t width = 0, scratch_count = 0;
  std::vector<Slot> slots;
  std::vector<Instruction> code;
  std::vector<const void*> operands;
  std::vector<bool> is_bool;  // of each operand
  std::vector<void*> results;
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
    std::vector<float> constants(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const int32_t bits = static_cast<int32_t>(slots[i].index);
      if (slots[i].source == kConstant) std::memcpy(&constants[i], &bits, 4);
    }
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
  const int64_t sets = static_cast<int64_t>(rows.size());
  if (!read_records(slots, program.slots) || !read_records(code, program.code) || sets == 0 ||
      operands.size() % sets || results.size() % sets) {
    return invalid("a program on rows that is cut off");
  }
  program.operands_each = static_cast<int64_t>(operands.size()) / sets;
  program.results_each = static_cast<int64_t>(results.size()) / sets;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = operands.get<ffi::AnyBuffer>(i);
    if (!operand.has_value()) return operand.error();
    program.operands.push_back(operand->untyped_data());
    program.is_bool.push_back(operand->element_type() == ffi::DataType::PRED);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    auto result = results.get<ffi::AnyBuffer>(i);
    if (!result.has_value()) return result.error();
    program.results.push_back((*result)->untyped_data());
  }
  std::vector<int64_t> summed;  // results, of each set, that are sums over all rows
  for (const Instruction& each : program.code) {
    if (static_cast<RowOp>(each.op) == RowOp::kColumnSum) summed.push_back(program.slots[each.out].index);
  }
  std::vector<Task> tasks;
  int64_t total_rows = 0;
  for (int64_t set = 0; set < sets; ++set) {
    const int64_t own = rows.begin()[set], step = own > 0 ? program.task_rows(own) : 0;
    for (int64_t task = 0; task < program.tasks(own); ++task) {
      tasks.push_back({set, task * step, std::min(own, (task + 1) * step)});
    }
    total_rows += own;
  }
  const int64_t count = static_cast<int64_t>(tasks.size()), sums = static_cast<int64_t>(summed.size()) * width;
  std::vector<float> partial(count * sums, 0.f);
  const int64_t cost = total_rows * width * static_cast<int64_t>(program.code.size()) / 4;
  Workers(pool).run(count, cost, [&](int64_t i) {
    program.run(tasks[i].set, tasks[i].first, tasks[i].last, partial.data() + i * sums);
  });
  for (size_t n = 0; n < summed.size(); ++n) {
    for (int64_t set = 0; set < sets; ++set) {
      float* out = static_cast<float*>(program.results[set * program.results_each + summed[n]]);
      std::fill(out, out + width, 0.f);
      for (int64_t task = 0; task < count; ++task) {
        const float* from = partial.data() + task * sums + n * width;
        for (int64_t i = 0; tasks[task].set == set && i < width; ++i) out[i] += from[i];
      }
    }
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
