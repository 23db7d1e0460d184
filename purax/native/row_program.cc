// Runs a program on rows: normalisations, softmax, activations, updates of weights.
//
// XLA needs a compiled kernel for each loop, some 15 ms of compilation each, and nothing is compiled here. A few
// rows at a time go through the whole program, so that what is computed between stays in the cache. The program is a
// list of operations on slots: operands, results, scratch memory and constants. One call may run it on several sets of
// operands, each with its own number of rows.
#include <vector>

#include "checks.h"
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

// An operand or a result.
struct Array {
  void* data;
  int64_t size;
  ffi::DataType dtype;
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
  Array *operands = nullptr, *results = nullptr;
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
          case kOperand: return static_cast<float*>(operands[first_operand + slot.index].data) + offset;
          case kResult: return static_cast<float*>(results[first_result + slot.index].data) + offset;
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
          uint8_t* out = static_cast<uint8_t*>(results[first_result + slots[each.out].index].data);
          store(out + row * extent_step(extent), place(each.a), count * extent_width(extent));
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

  // Whether the program stays inside of its arrays and of scratch memory, whatever is in them.
  bool is_valid(ffi::Span<const int64_t> rows) const {
    if (width < 0 || scratch_count < 0 || scratch_count > slots.size) return false;
    for (int64_t own : rows) {
      if (count_of({own, width}) < 0) return false;
    }
    for (const Instruction& each : code) {
      if (!is_valid(each, rows)) return false;
    }
    return true;
  }

 private:
  bool is_valid(const Instruction& each, ffi::Span<const int64_t> rows) const {
    if (each.op < 0 || each.op >= static_cast<int64_t>(RowOp::kCount) || !has_slot(each.out)) return false;
    const RowOp op = static_cast<RowOp>(each.op);
    const Slot& out = slots[each.out];
    if (op == RowOp::kStoreBool) {
      return out.source == kResult && holds(out, rows, ffi::DataType::PRED) && is_read(each.a, rows) &&
             (out.extent == kMatrix || out.extent == kPerRow) && slots[each.a].extent == out.extent;
    }
    if (out.source == kOperand || out.source == kConstant || !holds(out, rows, ffi::DataType::F32)) return false;
    if (op == RowOp::kColumnSum) {
      return out.source == kResult && out.extent == kOneRow && is_read(each.a, rows) && is_wide(slots[each.a]);
    }
    if (out.extent != kMatrix && out.extent != kPerRow) return false;
    if (op == RowOp::kLoad) {
      const int64_t size = count_of({each.c, extent_width(out.extent)});
      if (each.a < 0 || each.a >= operands_each || each.b < 1 || each.c < 1 || size < 0) return false;
      for (size_t set = 0; set < rows.size(); ++set) {
        const Array& from = operands[set * operands_each + each.a];
        if (from.size < size || (from.dtype != ffi::DataType::F32 && from.dtype != ffi::DataType::PRED)) return false;
      }
      return true;
    }
    if (op == RowOp::kRowSum || op == RowOp::kRowMax) {
      return out.extent == kPerRow && is_read(each.a, rows) && is_wide(slots[each.a]);
    }
    const int64_t arity = op < RowOp::kAdd ? 1 : op < RowOp::kSelect ? 2 : 3, given[] = {each.a, each.b, each.c};
    for (int64_t i = 0; i < 3; ++i) {
      if (i < arity ? !is_read(given[i], rows) : given[i] != -1) return false;
    }
    return true;
  }

  bool has_slot(int64_t number) const { return number >= 0 && number < slots.size; }
  bool is_wide(const Slot& slot) const { return extent_width(slot.extent) == width; }

  // Whether a slot can be read as numbers.
  bool is_read(int64_t number, ffi::Span<const int64_t> rows) const {
    return has_slot(number) && holds(slots[number], rows, ffi::DataType::F32);
  }

  // Whether what a slot stands for is as large as its extent, in each set, and of a dtype.
  bool holds(const Slot& slot, ffi::Span<const int64_t> rows, ffi::DataType dtype) const {
    if (slot.extent < kMatrix || slot.extent > kScalar) return false;
    if (slot.source == kConstant) return slot.extent == kScalar;
    if (slot.source == kScratch) return slot.index >= 0 && slot.index < scratch_count;
    const bool is_operand = slot.source == kOperand;
    if ((!is_operand && slot.source != kResult) || slot.index < 0) return false;
    const int64_t each = is_operand ? operands_each : results_each;
    if (slot.index >= each) return false;
    for (size_t set = 0; set < rows.size(); ++set) {
      const Array& array = (is_operand ? operands : results)[set * each + slot.index];
      const int64_t lines = slot.extent == kMatrix || slot.extent == kPerRow ? rows[set] : 1;
      if (array.dtype != dtype || array.size < lines * extent_width(slot.extent)) return false;
    }
    return true;
  }

  // Rows (row / each.b) % each.c of an operand.
  void load(float* out, int64_t own, int64_t operand, const Instruction& each, int64_t row, int64_t count) const {
    const Array& array = operands[operand];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = (row + i) / each.b % each.c * own;
      if (array.dtype == ffi::DataType::PRED) {
        const uint8_t* line = static_cast<const uint8_t*>(array.data) + from;
        for (int64_t j = 0; j < own; ++j) out[i * own + j] = line[j] ? 1.f : 0.f;
      } else {
        std::memcpy(out + i * own, static_cast<const float*>(array.data) + from, own * sizeof(float));
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
  Scratch<Array> arrays(operand_count + result_count);
  program.operands = arrays.get();
  program.results = program.operands + operand_count;
  for (int64_t i = 0; i < operand_count; ++i) {
    auto operand = operands.get<ffi::AnyBuffer>(i);
    if (!operand.has_value()) return operand.error();
    program.operands[i] = {operand->untyped_data(), int64_t(operand->element_count()), operand->element_type()};
  }
  for (int64_t i = 0; i < result_count; ++i) {
    auto result = results.get<ffi::AnyBuffer>(i);
    if (!result.has_value()) return result.error();
    program.results[i] = {(*result)->untyped_data(), int64_t((*result)->element_count()), (*result)->element_type()};
  }
  if (!program.is_valid(rows)) return invalid("a program on rows that would leave its arrays");
  int64_t count = 0, total_rows = 0, sums = 0;
  for (int64_t set = 0; set < sets; ++set) {
    count += program.tasks(rows.begin()[set]);
    total_rows += rows.begin()[set];
  }
  for (const Instruction& each : program.code) sums += static_cast<RowOp>(each.op) == RowOp::kColumnSum ? width : 0;
  // One piece of memory for all, since a call on small arrays takes little more than the time of getting it.
  Scratch<char> memory(count * sizeof(Task) + (program.slots.size + count * sums) * sizeof(float));
  char* place = memory.get();
  const auto take = [&](auto*& pointer, int64_t size) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(place);
    place += size * sizeof(*pointer);
  };
  Task* tasks;
  float* partial;
  take(tasks, count);
  take(program.constants, program.slots.size);
  take(partial, count * sums);
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
      float* out = static_cast<float*>(program.results[result].data);
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
