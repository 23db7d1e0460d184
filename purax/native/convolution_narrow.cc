// Convolutions with a kernel smaller than the result, as products of tiles: rows are positions, columns output features.
//
// Images are read with their features last (copied so if they are not), through a table of pointers: for each element of
// the kernel, the pixels that the positions of a tile meet, or zeros. So strides, padding and holes cost nothing but the
// table; images with few features get their padding in memory instead, and then there is no table. Kernels are packed to panels [element][input feature][some outputs]. With holes in the operand, the positions of
// one residue make up a tile, since they meet the same elements of the kernel. Every result is summed in one order.
#include <numeric>
#include <vector>

#include "convolution.h"

namespace purax {

template <class T>
void channels_last(const Loops<T>& loops, Workers& workers, const T* from, const int64_t (&outer)[4],
                   const int64_t (&steps)[4], int64_t channels, int64_t channel_step, int64_t groups, int64_t padded,
                   T* to) {
  int64_t run = 1, axis = 4;  // the last axes that are next to each other in memory are one run
  while (axis > 0 && (steps[axis - 1] == run || outer[axis - 1] == 1)) run *= outer[--axis];
  int64_t rest = 1;
  for (int64_t i = 0; i < axis; ++i) rest *= outer[i];
  int64_t pixel = groups * padded, chunk = 256, chunks = ceil_div(run, chunk), together = run == 1 ? 64 : 1;
  auto copy = [&](int64_t index, int64_t begin, int64_t end) {
    const T* source = from + begin;
    T* target = to + (index * run + begin) * pixel;
    for (int64_t i = axis - 1, left = index; i >= 0; left /= outer[i], --i) source += left % outer[i] * steps[i];
    for (int64_t g = 0; g < groups; ++g, source += channels * channel_step, target += padded) {
      if (channel_step == 1) {
        for (int64_t j = 0; j < end - begin; ++j) std::copy_n(source + j, channels, target + j * pixel);
      } else {
        loops.transpose(source, channel_step, target, pixel, channels, end - begin);
      }
      if (channels == padded) continue;
      for (int64_t j = 0; j < end - begin; ++j) std::fill_n(target + j * pixel + channels, padded - channels, T(0));
    }
  };
  workers.run(ceil_div(rest, together) * chunks, rest * run * groups * channels * int64_t(sizeof(T)), [&](int64_t task) {
    int64_t first = task / chunks * together, begin = task % chunks * chunk;
    for (int64_t index = first; index < std::min(first + together, rest); ++index) {
      copy(index, begin, std::min(begin + chunk, run));
    }
  });
}

Meeting::Meeting(int64_t offset, int64_t size, int64_t step, int64_t count, int64_t dilation) {
  int64_t common = std::lcm(step, dilation);
  m_step = common / step, p_step = common / dilation;
  for (p = 0; p < count; ++p) {
    int64_t place = offset + p * dilation;
    if (place < 0 || place % step) continue;
    m = place / step;
    if (m < size) times = std::min((size - 1 - m) / m_step, (count - 1 - p) / p_step) + 1;
    return;
  }
}

namespace {

// The panels of all groups: rows in the order of the window and then the inputs, some outputs to each row.
template <class T>
class Panels {
 public:
  Panels(const Loops<T>& loops, Workers& workers, const Convolution& at, const T* rhs)
      : full_(2 * loops.lanes), rows_(at.taps() * at.features), columns_(loops.padded(at.outputs)),
        count_(ceil_div(at.outputs, full_)), data_(at.groups * rows_ * columns_) {
    workers.run(at.groups * count_, at.groups * rows_ * columns_ * int64_t(sizeof(T)), [&](int64_t task) {
      int64_t group = task / count_, panel = task % count_;
      pack(loops, at, rhs + group * at.rhs_group + panel * full_ * at.rhs.first, width(panel),
           std::min(full_, at.outputs - panel * full_), data_.get() + group * rows_ * columns_ + panel * full_ * rows_);
    });
  }

  int64_t count() const { return count_; }
  int64_t full() const { return full_; }
  int64_t width(int64_t panel) const { return std::min(full_, columns_ - panel * full_); }
  const T* get(int64_t group, int64_t panel) { return data_.get() + group * rows_ * columns_ + panel * full_ * rows_; }

 private:
  static void pack(const Loops<T>& loops, const Convolution& at, const T* from, int64_t width, int64_t outputs, T* to) {
    const Steps& steps = at.rhs;
    int64_t taps = at.taps(), rows = taps * at.features;
    if (outputs < width) std::fill_n(to, rows * width, T(0));
    bool whole_window = steps.space[2] == 1 && (at.window[1] == 1 || steps.space[1] == at.window[2]) &&
                        (at.window[0] == 1 || steps.space[0] == at.window[1] * at.window[2]);
    if (whole_window && steps.second == taps && steps.first > taps) {  // each output has its elements in a row
      constexpr int64_t chunk = 64;
      T turned[chunk * 32];
      for (int64_t begin = 0; begin < rows; begin += chunk) {
        int64_t count = std::min(chunk, rows - begin);
        loops.transpose(from + begin, steps.first, turned, width, outputs, count);
        for (int64_t k = 0; k < count; ++k) {
          int64_t feature = (begin + k) / taps, tap = (begin + k) % taps;
          std::copy_n(turned + k * width, outputs, to + (tap * at.features + feature) * width);
        }
      }
      return;
    }
    for (int64_t feature = 0; feature < at.features; ++feature) {
      T* row = to + feature * width;
      for (int64_t q0 = 0; q0 < at.window[0]; ++q0) {
        for (int64_t q1 = 0; q1 < at.window[1]; ++q1) {
          for (int64_t q2 = 0; q2 < at.window[2]; ++q2, row += at.features * width) {
            const T* source = from + feature * steps.second + q0 * steps.space[0] + q1 * steps.space[1] + q2 * steps.space[2];
            for (int64_t o = 0; o < outputs; ++o) row[o] = source[o * steps.first];
          }
        }
      }
    }
  }

  int64_t full_, rows_, columns_, count_;
  Scratch<T> data_;
};

// The positions whose remainders along the first axes are given, and the elements of the kernel that they meet. Along the
// last axis all positions are taken, since they lie side by side in memory; their elements depend on the remainder.
struct Residue {
  int64_t start[kAxes] = {}, step[kAxes] = {1, 1, 1}, count[kAxes];
  std::vector<int64_t> taps[kAxes - 1];
  int64_t positions;
};

// The elements of the kernel that positions with remainder `start` meet along an axis.
std::vector<int64_t> taps_met(const Convolution& at, int axis, int64_t start) {
  std::vector<int64_t> found;
  for (int64_t q = 0; q < at.window[axis]; ++q) {
    int64_t place = start * at.stride[axis] + q * at.rhs_dilation[axis] - at.low[axis];
    if (place % at.lhs_dilation[axis] == 0) found.push_back(q);
  }
  return found;
}

int64_t period(const Convolution& at, int axis) {
  return at.lhs_dilation[axis] / std::gcd(at.lhs_dilation[axis], at.stride[axis]);
}

std::vector<Residue> residues(const Convolution& at) {
  std::vector<Residue> found;
  for (int64_t first = 0; first < std::min(period(at, 0), at.out_size[0]); ++first) {
    for (int64_t second = 0; second < std::min(period(at, 1), at.out_size[1]); ++second) {
      Residue own;
      own.start[0] = first, own.start[1] = second, own.step[0] = period(at, 0), own.step[1] = period(at, 1);
      for (int axis = 0; axis < kAxes; ++axis) own.count[axis] = ceil_div(at.out_size[axis] - own.start[axis], own.step[axis]);
      for (int axis = 0; axis < kAxes - 1; ++axis) own.taps[axis] = taps_met(at, axis, own.start[axis]);
      own.positions = at.batch * own.count[0] * own.count[1] * own.count[2];
      found.push_back(std::move(own));
    }
  }
  return found;
}

// One position of a block: its image, where its window begins in it (counted with holes), its place in the result.
template <class T>
struct Position {
  const T* image;
  int64_t start[kAxes], out;
  int64_t remainder;  // of its place along the last axis
};

constexpr int64_t kFewFeatures = 16;

// Memory whose size is known late.
template <class T>
class Buffer {
 public:
  void resize(int64_t size) { memory_ = std::make_unique<Scratch<T>>(size), size_ = size; }
  T* data() { return memory_->get(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<Scratch<T>> memory_;
  size_t size_ = 0;
};

template <class T>
class Narrow {
 public:
  Narrow(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out)
      : loops_(loops<T>()), workers_(workers), at_(at), image_(lhs), steps_(at.lhs), lhs_group_(at.lhs_group), out_(out),
        panels_(loops_, workers, at, rhs) {
    bool has_holes = false;
    for (int64_t holes : at.lhs_dilation) has_holes |= holes > 1;
    if (!has_holes && at.all_features <= kFewFeatures && !stays_inside()) {
      pad();
    } else if (steps_.second != 1 && at.all_features > 1) {
      turn();
    }
    // Where pixels of a row are next to each other, so are the elements of the kernel that they meet.
    joins_ = at_.lhs_dilation[2] == 1 && at_.rhs_dilation[2] == 1 && steps_.space[2] == at_.features;
    needs_table_ = has_holes || !stays_inside();
    for (int64_t start = 0; start < period(at_, 2); ++start) last_taps_.push_back(taps_met(at_, 2, start));
    zeros_.assign(at_.features * (joins_ ? at_.window[2] : 1), T(0));
    if (!needs_table_) shift();
    int64_t run = at_.out.space[2];
    is_even_ = last_taps_.size() == 1 && period(at_, 0) == 1 && period(at_, 1) == 1 && at_.out.second == 1;
    for (int axis = kAxes - 1; axis >= 0; run *= at_.out_size[axis--]) {
      is_even_ &= at_.out_size[axis] == 1 || at_.out.space[axis] == run;
    }
    is_even_ &= at_.batch == 1 || at_.out.first == run;
  }

  void run() {
    std::vector<Residue> classes = residues(at_);
    int64_t tallest = loops_.rows, tap_count = at_.taps();
    // A block is what one task does with one panel after another; its table of pointers should stay in the cache.
    int64_t all = at_.groups * at_.batch * at_.places(), most = workers_.count() > 1 ? workers_.count() * 4 : 1;
    int64_t periods = last_taps_.size();
    int64_t height = std::clamp<int64_t>(16384 / (tallest * tap_count), std::min<int64_t>(periods, 4), 8 * periods);
    height = std::clamp<int64_t>(all / (tallest * most), 1, height) * tallest;
    struct Task {
      int64_t group, which, begin, end;
    };
    std::vector<Task> tasks;
    for (int64_t group = 0; group < at_.groups; ++group) {
      for (int64_t which = 0; which < int64_t(classes.size()); ++which) {
        int64_t count = classes[which].positions;
        for (int64_t begin = 0; begin < count; begin += height) {
          tasks.push_back({group, which, begin, std::min(begin + height, count)});
        }
      }
    }
    int64_t parts = std::clamp<int64_t>(ceil_div(most, std::max<int64_t>(tasks.size(), 1)), 1, panels_.count());
    int64_t cost = all * tap_count * at_.features * at_.outputs / loops_.lanes * 4;
    workers_.run(int64_t(tasks.size()) * parts, cost, [&](int64_t index) {
      const Task& task = tasks[index / parts];
      int64_t part = index % parts, first = panels_.count() * part / parts, last = panels_.count() * (part + 1) / parts;
      block(task.group, classes[task.which], task.begin, task.end, first, last);
    });
  }

 private:
  // Whether no position meets padding.
  bool stays_inside() const {
    for (int axis = 0; axis < kAxes; ++axis) {
      if (at_.low[axis] > 0 || last_met(axis) >= at_.size[axis]) return false;
    }
    return true;
  }

  int64_t last_met(int axis) const {
    return (at_.out_size[axis] - 1) * at_.stride[axis] - at_.low[axis] + (at_.window[axis] - 1) * at_.rhs_dilation[axis];
  }

  // Copies the images with their padding, features last.
  void pad() {
    int64_t low[kAxes], size[kAxes], features = at_.all_features;
    for (int axis = 0; axis < kAxes; ++axis) {
      low[axis] = std::max<int64_t>(at_.low[axis], 0);
      size[axis] = low[axis] + at_.size[axis] + std::max<int64_t>(last_met(axis) + 1 - at_.size[axis], 0);
    }
    Steps padded = {size[0] * size[1] * size[2] * features, 1, {size[1] * size[2] * features, size[2] * features, features}};
    copy_.resize(at_.all_batch * padded.first);
    int64_t planes = at_.all_batch * size[0];
    workers_.run(planes, int64_t(copy_.size() * sizeof(T)), [&](int64_t plane) {
      int64_t n = plane / size[0], y0 = plane % size[0] - low[0];
      T* to = copy_.data() + plane * padded.space[0];
      std::fill_n(to, padded.space[0], T(0));
      if (y0 < 0 || y0 >= at_.size[0]) return;
      for (int64_t y1 = 0; y1 < at_.size[1]; ++y1) {
        const T* from = image_ + n * steps_.first + y0 * steps_.space[0] + y1 * steps_.space[1];
        T* row = to + (y1 + low[1]) * padded.space[1] + low[2] * features;
        for (int64_t f = 0; f < features; ++f) {
          const T* own = from + f * steps_.second;
          for (int64_t y2 = 0; y2 < at_.size[2]; ++y2) row[y2 * features + f] = own[y2 * steps_.space[2]];
        }
      }
    });
    lhs_group_ = at_.all_features != at_.features ? at_.features : at_.batch * padded.first;
    image_ = copy_.data(), steps_ = padded;
    for (int axis = 0; axis < kAxes; ++axis) at_.low[axis] -= low[axis], at_.size[axis] = size[axis];
  }

  // The segments of all tiles, if none meets padding.
  void shift() {
    for (int64_t q0 = 0; q0 < at_.window[0]; ++q0) {
      for (int64_t q1 = 0; q1 < at_.window[1]; ++q1) {
        for (int64_t q2 = 0; q2 < (joins_ ? 1 : at_.window[2]); ++q2) {
          int64_t tap = (q0 * at_.window[1] + q1) * at_.window[2] + q2;
          int64_t place = q0 * at_.rhs_dilation[0] * steps_.space[0] + q1 * at_.rhs_dilation[1] * steps_.space[1] +
                          q2 * at_.rhs_dilation[2] * steps_.space[2];
          shifted_.push_back({tap * at_.features, at_.features * (joins_ ? at_.window[2] : 1), place});
        }
      }
    }
  }

  void turn() {
    int64_t pixels = at_.size[0] * at_.size[1] * at_.size[2], features = at_.all_features;
    copy_.resize(at_.all_batch * pixels * features);
    channels_last<T>(loops_, workers_, image_, {at_.all_batch, at_.size[0], at_.size[1], at_.size[2]},
                     {steps_.first, steps_.space[0], steps_.space[1], steps_.space[2]}, features, steps_.second, 1, features,
                     copy_.data());
    bool groups_features = at_.all_features != at_.features;
    lhs_group_ = groups_features ? at_.features : at_.batch * pixels * features;
    image_ = copy_.data();
    steps_ = {pixels * features, 1, {at_.size[1] * at_.size[2] * features, at_.size[2] * features, features}};
  }

  // Some positions of one remainder: a tile. `order` lists positions of a block by their remainders.
  struct Tile {
    int64_t begin, count, first_segment, segments;
  };

  void block(int64_t group, const Residue& own, int64_t begin, int64_t end, int64_t first_panel, int64_t last_panel) {
    int64_t count = end - begin, tallest = loops_.rows, periods = last_taps_.size();
    std::vector<Position<T>> positions(count);
    place(group, own, begin, count, positions.data());
    std::vector<int64_t> order;
    std::vector<Tile> tiles;
    std::vector<const T*> pointers;
    std::vector<Segment> segments;
    for (int64_t remainder = 0; remainder < periods; ++remainder) {
      int64_t first = order.size();
      for (int64_t i = 0; i < count; ++i) {
        if (positions[i].remainder == remainder) order.push_back(i);
      }
      for (int64_t next = first; next < int64_t(order.size()); next += tallest) {
        Tile tile{next, std::min<int64_t>(tallest, order.size() - next), int64_t(segments.size()), 0};
        if (needs_table_) {
          point(own, last_taps_[remainder], positions.data(), order.data() + next, tile.count, &pointers, &segments);
          tile.segments = segments.size() - tile.first_segment;
        } else {
          for (int64_t m = 0; m < tallest; ++m) {
            const Position<T>& position = positions[next + std::min(m, tile.count - 1)];
            pointers.push_back(position.image + position.start[0] * steps_.space[0] + position.start[1] * steps_.space[1] +
                               position.start[2] * steps_.space[2]);
          }
        }
        tiles.push_back(tile);
      }
    }
    Scratch<T> result((count + 2 * tallest) * panels_.full());
    T* spare = result.get() + (count + tallest) * panels_.full();
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      int64_t width = panels_.width(panel), vectors = width / loops_.lanes;
      int64_t outputs = std::min(panels_.full(), at_.outputs - panel * panels_.full());
      T* out = out_ + group * at_.out_group + panel * panels_.full() * at_.out.second;
      for (const Tile& tile : tiles) {
        int which = loops_.at_least(tile.count);
        bool is_direct = is_even_ && outputs == width && loops_.height(which) == tile.count;
        T* to = is_direct ? out + positions[tile.begin].out : periods == 1 ? result.get() + tile.begin * width : spare;
        const T** rows = pointers.data() + (needs_table_ ? tile.first_segment : tile.begin / tallest) * tallest;
        loops_.multiply_rows[which][vectors - 1](
            rows, needs_table_ ? tallest : 0, needs_table_ ? segments.data() + tile.first_segment : shifted_.data(),
            needs_table_ ? tile.segments : int64_t(shifted_.size()), panels_.get(group, panel), to,
            is_direct ? at_.out.space[2] : width);
        if (is_direct) continue;
        if (periods == 1) {
          if (at_.out.second == 1) write(to, width, positions.data() + tile.begin, tile.count, outputs, out);
          continue;
        }
        for (int64_t m = 0; m < tile.count; ++m) {
          std::copy_n(spare + m * width, width, result.get() + order[tile.begin + m] * width);
        }
      }
      if (periods > 1 || at_.out.second != 1) write(result.get(), width, positions.data(), count, outputs, out);
    }
  }

  // Fills in the positions from number `begin` of the residue on.
  void place(int64_t group, const Residue& own, int64_t begin, int64_t count, Position<T>* to) {
    int64_t index[kAxes], image = begin;
    for (int axis = kAxes - 1; axis >= 0; --axis) index[axis] = image % own.count[axis], image /= own.count[axis];
    for (int64_t i = 0; i < count; ++i, ++to) {
      to->image = image_ + group * lhs_group_ + image * steps_.first;
      to->out = image * at_.out.first;
      for (int axis = 0; axis < kAxes; ++axis) {
        int64_t place = own.start[axis] + index[axis] * own.step[axis];
        to->start[axis] = place * at_.stride[axis] - at_.low[axis];
        to->out += place * at_.out.space[axis];
        if (axis == kAxes - 1) to->remainder = place % int64_t(last_taps_.size());
      }
      for (int axis = kAxes - 1; axis >= 0; --axis) {
        if (++index[axis] < own.count[axis]) break;
        index[axis] = 0;
        if (axis == 0) ++image;
      }
    }
  }

  // The pixels that `count` positions meet, for each element of the kernel.
  void point(const Residue& own, const std::vector<int64_t>& last_taps, const Position<T>* positions, const int64_t* order,
             int64_t count, std::vector<const T*>* pointers, std::vector<Segment>* segments) {
    int64_t pitch = loops_.rows;
    bool joins = joins_;
    for (int64_t m = 0; m < count && joins; ++m) {
      int64_t start = positions[order[m]].start[2];
      joins = start >= 0 && start + at_.window[2] <= at_.size[2];
    }
    int64_t length = joins ? at_.features * at_.window[2] : at_.features, columns = joins ? 1 : last_taps.size();
    for (int64_t q0 : own.taps[0]) {
      for (int64_t q1 : own.taps[1]) {
        size_t base = pointers->size();
        pointers->resize(base + columns * pitch, zeros_.data());
        const T** to = pointers->data() + base;
        for (int64_t j = 0; j < columns; ++j) {
          int64_t tap = (q0 * at_.window[1] + q1) * at_.window[2] + (joins ? 0 : last_taps[j]);
          segments->push_back({tap * at_.features, length, 0});
        }
        for (int64_t m = 0; m < count; ++m) {
          const Position<T>& position = positions[order[m]];
          int64_t y0 = inside(position.start[0], q0, 0), y1 = inside(position.start[1], q1, 1);
          if (y0 < 0 || y1 < 0) continue;
          const T* row = position.image + y0 * steps_.space[0] + y1 * steps_.space[1];
          if (joins) {
            to[m] = row + position.start[2] * steps_.space[2];
            continue;
          }
          for (int64_t j = 0; j < columns; ++j) {
            int64_t y2 = inside(position.start[2], last_taps[j], 2);
            if (y2 >= 0) to[j * pitch + m] = row + y2 * steps_.space[2];
          }
        }
      }
    }
  }

  // The index along an axis of what element `tap` of the kernel meets, −1 if that is padding.
  int64_t inside(int64_t start, int64_t tap, int axis) const {
    int64_t place = start + tap * at_.rhs_dilation[axis];
    if (place < 0) return -1;
    if (at_.lhs_dilation[axis] > 1) place /= at_.lhs_dilation[axis];
    return place < at_.size[axis] ? place : -1;
  }

  void write(const T* from, int64_t width, const Position<T>* positions, int64_t count, int64_t outputs, T* to) {
    if (at_.out.second == 1) {
      for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * width, outputs, to + positions[i].out);
      return;
    }
    for (int64_t i = 0; i < count;) {  // runs of positions that are next to each other in memory
      int64_t end = i + 1;
      while (end < count && positions[end].out == positions[end - 1].out + 1) ++end;
      loops_.transpose(from + i * width, width, to + positions[i].out, at_.out.second, end - i, outputs);
      i = end;
    }
  }

  const Loops<T>& loops_;
  Workers& workers_;
  Convolution at_;
  const T* image_;
  Steps steps_;
  int64_t lhs_group_;
  T* out_;
  Buffer<T> copy_;
  Panels<T> panels_;
  bool joins_, needs_table_, is_even_;
  std::vector<Segment> shifted_;
  std::vector<std::vector<int64_t>> last_taps_;  // for each remainder along the last axis
  std::vector<T> zeros_;
};

}  // namespace

template <class T>
void convolve_narrow(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  Narrow<T>(workers, at, lhs, rhs, out).run();
}

template void channels_last(const Loops<float>&, Workers&, const float*, const int64_t (&)[4], const int64_t (&)[4],
                            int64_t, int64_t, int64_t, int64_t, float*);
template void channels_last(const Loops<double>&, Workers&, const double*, const int64_t (&)[4], const int64_t (&)[4],
                            int64_t, int64_t, int64_t, int64_t, double*);
template void convolve_narrow(Workers&, const Convolution&, const float*, const float*, float*);
template void convolve_narrow(Workers&, const Convolution&, const double*, const double*, double*);

}  // namespace purax
