// Convolutions with a kernel larger than the result, which derivatives by the kernel are: sums of outer products.
//
// For each position of the result, out[n, o] = Σ lhs[n, pixel] · rhs[o, pixel] over the pixels that meet, as tiles of
// batch elements and output features; both operands are read with these last (copied so if they are not). The sum is cut
// into parts that different threads do; how depends on sizes alone, and the parts are added in order, so that results do
// not depend on the number of threads.
#include <vector>

#include "convolution.h"

namespace purax {
namespace {

constexpr int64_t kManyTasks = 32;     // parts of the work that keep the threads of any machine busy
constexpr int64_t kLongSum = 1024;     // terms of a sum that are worth a part
constexpr int64_t kBlock = 512;        // terms that are read again and again from the cache
constexpr int64_t kBatchChunk = 96;    // batch elements of one task

// The stretches of the sum for one position of the result, in rows [begin, end) of the kernel; a row is all of its last
// axis, numbered by (feature, first axis, second axis).
template <class T>
void meet(const Convolution& at, const int64_t (&place)[kAxes], const Meeting& last, const T* lhs, const Steps& lhs_steps,
          const T* rhs, const Steps& rhs_steps, int64_t begin, int64_t end, std::vector<Piece<T>>* pieces) {
  pieces->clear();
  if (!last.times) return;
  for (int64_t row = begin; row < end; ++row) {
    int64_t p1 = row % at.window[1], p0 = row / at.window[1] % at.window[0], feature = row / (at.window[0] * at.window[1]);
    int64_t y0 = place[0] * at.stride[0] + p0 * at.rhs_dilation[0] - at.low[0];
    int64_t y1 = place[1] * at.stride[1] + p1 * at.rhs_dilation[1] - at.low[1];
    if (y0 < 0 || y1 < 0 || y0 % at.lhs_dilation[0] || y1 % at.lhs_dilation[1]) continue;
    y0 /= at.lhs_dilation[0], y1 /= at.lhs_dilation[1];
    if (y0 >= at.size[0] || y1 >= at.size[1]) continue;
    pieces->push_back({lhs + feature * lhs_steps.second + y0 * lhs_steps.space[0] + y1 * lhs_steps.space[1] +
                           last.m * lhs_steps.space[2],
                       rhs + feature * rhs_steps.second + p0 * rhs_steps.space[0] + p1 * rhs_steps.space[1] +
                           last.p * rhs_steps.space[2],
                       last.times});
  }
}

Meeting last_axis(const Convolution& at, int64_t place) {
  return Meeting(place * at.stride[2] - at.low[2], at.size[2], at.lhs_dilation[2], at.window[2], at.rhs_dilation[2]);
}

void unravel(int64_t index, const int64_t (&sizes)[kAxes], int64_t (&place)[kAxes]) {
  for (int axis = kAxes - 1; axis >= 0; --axis) place[axis] = index % sizes[axis], index /= sizes[axis];
}

int64_t offset(const int64_t (&place)[kAxes], const Steps& steps) {
  return place[0] * steps.space[0] + place[1] * steps.space[1] + place[2] * steps.space[2];
}

template <class T>
class Wide {
 public:
  Wide(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out)
      : loops_(loops<T>()), workers_(workers), at_(at), lhs_(lhs), rhs_(rhs), out_(out), lhs_steps_(at.lhs),
        rhs_steps_(at.rhs), lhs_group_(at.lhs_group), rhs_group_(at.rhs_group), columns_(loops_.padded(at.outputs)),
        turns_lhs_(at.lhs.first != 1 && at.all_batch > 1),
        turns_rhs_((at.rhs.first != 1 && at.outputs > 1) || columns_ != at.outputs),
        lhs_copy_(turns_lhs_ ? at.all_batch * at.all_features * at.size[0] * at.size[1] * at.size[2] : 0),
        rhs_copy_(turns_rhs_ ? at.groups * columns_ * at.features * at.taps() : 0) {
    if (turns_lhs_) turn_lhs();
    if (turns_rhs_) turn_rhs();
  }

  void run() {
    int64_t places = at_.places(), rows = at_.features * at_.window[0] * at_.window[1], length = at_.window[2];
    int64_t chunks = ceil_div(at_.batch, kBatchChunk), step = joins() ? at_.out_size[2] : 1;
    int64_t tasks = at_.groups * places / step * chunks;
    int64_t parts = std::clamp<int64_t>(rows * length / kLongSum, 1, ceil_div(kManyTasks, tasks));
    parts = std::min(parts, rows);
    int64_t result = at_.groups * places * at_.batch * columns_;
    Scratch<T> sums(parts * result);
    int64_t cost = at_.groups * places * at_.batch * rows * length * columns_ / loops_.lanes * 4;
    workers_.run(tasks * parts, cost, [&](int64_t task) {
      int64_t part = task / tasks, index = task % tasks, chunk = index % chunks, group = index / (chunks * (places / step));
      int64_t place = index / chunks % (places / step) * step, begin = chunk * kBatchChunk;
      T* own = sums.get() + part * result + (group * places + place) * at_.batch * columns_ + begin * columns_;
      int64_t first_row = rows * part / parts, last_row = rows * (part + 1) / parts;
      if (step > 1) {
        sum_together(group, place, first_row, last_row, own);
      } else {
        sum(group, place, begin, std::min(begin + kBatchChunk, at_.batch), first_row, last_row, own);
      }
    });
    int64_t lines = at_.groups * at_.batch;
    workers_.run(lines, parts * result * int64_t(sizeof(T)), [&](int64_t line) {
      int64_t group = line / at_.batch, n = line % at_.batch;
      for (int64_t index = 0; index < places; ++index) {
        int64_t place[kAxes];
        unravel(index, at_.out_size, place);
        T* own = sums.get() + ((group * places + index) * at_.batch + n) * columns_;
        for (int64_t part = 1; part < parts; ++part) {
          for (int64_t o = 0; o < at_.outputs; ++o) own[o] += own[part * result + o];
        }
        T* to = out_ + group * at_.out_group + n * at_.out.first + offset(place, at_.out);
        for (int64_t o = 0; o < at_.outputs; ++o) to[o * at_.out.second] = own[o];
      }
    });
  }

 private:
  void turn_lhs() {
    int64_t pixels = at_.size[0] * at_.size[1] * at_.size[2], batch = at_.all_batch;
    channels_last<T>(loops_, workers_, lhs_, {at_.all_features, at_.size[0], at_.size[1], at_.size[2]},
                     {lhs_steps_.second, lhs_steps_.space[0], lhs_steps_.space[1], lhs_steps_.space[2]}, batch,
                     lhs_steps_.first, 1, batch, lhs_copy_.get());
    lhs_ = lhs_copy_.get();
    lhs_group_ = batch == at_.batch ? at_.features * pixels * batch : at_.batch;
    lhs_steps_ = {1, pixels * batch, {at_.size[1] * at_.size[2] * batch, at_.size[2] * batch, batch}};
  }

  void turn_rhs() {
    int64_t pixel = at_.groups * columns_;
    channels_last<T>(loops_, workers_, rhs_, {at_.features, at_.window[0], at_.window[1], at_.window[2]},
                     {rhs_steps_.second, rhs_steps_.space[0], rhs_steps_.space[1], rhs_steps_.space[2]}, at_.outputs,
                     rhs_steps_.first, at_.groups, columns_, rhs_copy_.get());
    rhs_ = rhs_copy_.get();
    rhs_group_ = columns_;
    rhs_steps_ = {1, at_.taps() * pixel, {at_.window[1] * at_.window[2] * pixel, at_.window[2] * pixel, pixel}};
  }

  // Whether the positions along the last axis are done together: what they meet lies side by side, and fills tiles that
  // few batch elements would not fill.
  bool joins() const {
    return at_.batch < loops_.rows && at_.out_size[2] > 1 && at_.stride[2] == 1 && at_.lhs_dilation[2] == 1 &&
           lhs_steps_.space[2] == at_.batch && lhs_steps_.first == 1;
  }

  // Sums over rows [begin, end) of the kernel for some batch elements at one position.
  void sum(int64_t group, int64_t index, int64_t first, int64_t last, int64_t begin, int64_t end, T* own) {
    std::fill_n(own, (last - first) * columns_, T(0));
    int64_t place[kAxes];
    unravel(index, at_.out_size, place);
    Meeting along = last_axis(at_, place[2]);
    std::vector<Piece<T>> pieces;
    for (int64_t row = begin; row < end; row += rows_of_a_block()) {
      int64_t stop = std::min(row + rows_of_a_block(), end);
      meet(at_, place, along, lhs_ + group * lhs_group_, lhs_steps_, rhs_ + group * rhs_group_, rhs_steps_, row, stop, &pieces);
      multiply(pieces, along, first, last, own);
    }
  }

  // The same for all positions along the last axis: pixels that all of them meet at once, and then the others.
  void sum_together(int64_t group, int64_t index, int64_t begin, int64_t end, T* own) {
    int64_t count = at_.out_size[2], low = 0, high = at_.window[2], place[kAxes];
    std::fill_n(own, count * at_.batch * columns_, T(0));
    unravel(index, at_.out_size, place);
    std::vector<Meeting> along;
    for (int64_t i = 0; i < count; ++i) {
      along.push_back(last_axis(at_, i));
      if (!along[i].times) high = 0;
      low = std::max(low, along[i].p), high = std::min(high, along[i].p + along[i].times);
    }
    high = std::max(low, high);
    std::vector<Piece<T>> pieces;
    auto part = [&](int64_t i, int64_t from, int64_t stop, int64_t row, int64_t row_end, int64_t width) {
      Meeting own_part = along[i];
      own_part.m += (from - own_part.p) * own_part.m_step, own_part.p = from, own_part.times = stop - from;
      if (stop <= from) return;
      meet(at_, place, own_part, lhs_ + group * lhs_group_, lhs_steps_, rhs_ + group * rhs_group_, rhs_steps_, row, row_end,
           &pieces);
      multiply(pieces, own_part, 0, width * at_.batch, own + i * at_.batch * columns_);
    };
    for (int64_t row = begin; row < end; row += rows_of_a_block()) {
      int64_t stop = std::min(row + rows_of_a_block(), end);
      part(0, low, high, row, stop, count);
      for (int64_t i = 0; i < count; ++i) {
        if (!along[i].times) continue;
        int64_t first = along[i].p, last = along[i].p + along[i].times;
        part(i, first, std::min(low, last), row, stop, 1);
        part(i, std::max(high, first), last, row, stop, 1);
      }
    }
  }

  int64_t rows_of_a_block() const { return std::max<int64_t>(kBlock / at_.window[2], 1); }

  // Adds the products of pieces for rows [first, last), which lie side by side.
  void multiply(const std::vector<Piece<T>>& pieces, const Meeting& along, int64_t first, int64_t last, T* own) {
    int64_t full = 2 * loops_.lanes, a_step = along.m_step * lhs_steps_.space[2], b_step = along.p_step * rhs_steps_.space[2];
    if (pieces.empty()) return;
    for (int64_t column = 0; column < columns_; column += full) {
      int vectors = std::min(full, columns_ - column) / loops_.lanes;
      for (int64_t n = first; n < last;) {
        int which = loops_.at_most(last - n);
        loops_.multiply_outer[which][vectors - 1](pieces.data(), pieces.size(), n, a_step, column, b_step,
                                                  own + (n - first) * columns_ + column, columns_);
        n += loops_.height(which);
      }
    }
  }

  const Loops<T>& loops_;
  Workers& workers_;
  const Convolution& at_;
  const T *lhs_, *rhs_;
  T* out_;
  Steps lhs_steps_, rhs_steps_;
  int64_t lhs_group_, rhs_group_, columns_;
  bool turns_lhs_, turns_rhs_;
  Scratch<T> lhs_copy_, rhs_copy_;
};

// Along the last axis, where its elements are next to each other: a task is a group, its sums for all positions.
template <class T>
void by_rows(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  const Loops<T>& loops = purax::loops<T>();
  int64_t places = at.places(), rows = at.features * at.window[0] * at.window[1];
  workers.run(at.groups, at.groups * places * rows * at.window[2] / 4, [&](int64_t group) {
    const T *x = lhs + group * at.lhs_group, *y = rhs + group * at.rhs_group;
    std::vector<T> sums(places * loops.lanes, T(0));
    std::vector<Meeting> along;
    for (int64_t i = 0; i < at.out_size[2]; ++i) along.push_back(last_axis(at, i));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t p1 = row % at.window[1], p0 = row / at.window[1] % at.window[0], feature = row / (at.window[0] * at.window[1]);
      const T* own = y + feature * at.rhs.second + p0 * at.rhs.space[0] + p1 * at.rhs.space[1];
      for (int64_t i0 = 0; i0 < at.out_size[0]; ++i0) {
        int64_t y0 = i0 * at.stride[0] + p0 * at.rhs_dilation[0] - at.low[0];
        if (y0 < 0 || y0 >= at.size[0]) continue;
        for (int64_t i1 = 0; i1 < at.out_size[1]; ++i1) {
          int64_t y1 = i1 * at.stride[1] + p1 * at.rhs_dilation[1] - at.low[1];
          if (y1 < 0 || y1 >= at.size[1]) continue;
          const T* line = x + feature * at.lhs.second + y0 * at.lhs.space[0] + y1 * at.lhs.space[1];
          T* to = sums.data() + (i0 * at.out_size[1] + i1) * at.out_size[2] * loops.lanes;
          // What all positions along the axis meet is done for all of them at once, the ends for each.
          for (int64_t i = 0; i < at.out_size[2];) {
            int64_t count = std::min<int64_t>(at.out_size[2] - i, 9), low = 0, high = at.window[2];
            for (int64_t j = 0; j < count; ++j) {
              low = std::max(low, along[i + j].p), high = std::min(high, along[i + j].p + along[i + j].times);
            }
            high = std::max(low, high);
            const T* starts[9];
            for (int64_t j = 0; j < count; ++j) {
              const Meeting& meeting = along[i + j];
              starts[j] = line + meeting.m + low - meeting.p;
              T* tail = to + (i + j) * loops.lanes;
              auto single = [&](int64_t from, int64_t end) {
                for (int64_t p = from; p < end; ++p) tail[0] += line[meeting.m + p - meeting.p] * own[p];
              };
              int64_t begin = meeting.p, end = meeting.p + meeting.times;
              single(begin, std::min(low, end));
              single(std::max(high, begin), end);
            }
            if (high > low) loops.correlate[count - 1](starts, own + low, high - low, to + i * loops.lanes);
            i += count;
          }
        }
      }
    }
    for (int64_t index = 0; index < places; ++index) {
      int64_t place[kAxes];
      unravel(index, at.out_size, place);
      T total = 0;
      for (int lane = 0; lane < loops.lanes; ++lane) total += sums[index * loops.lanes + lane];
      out[group * at.out_group + offset(place, at.out)] = total;
    }
  });
}

// Where the groups are next to each other: a task is a position and a part of the sum, its sums for all groups.
template <class T>
void by_channels(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  const Loops<T>& loops = purax::loops<T>();
  int64_t places = at.places(), rows = at.features * at.window[0] * at.window[1];
  int64_t parts = std::clamp<int64_t>(rows * at.window[2] / kLongSum, 1, ceil_div(kManyTasks, places));
  parts = std::min(parts, rows);
  Scratch<T> sums(parts * places * at.groups);
  workers.run(places * parts, at.groups * places * rows * at.window[2] / 4, [&](int64_t task) {
    int64_t part = task / places, place[kAxes];
    unravel(task % places, at.out_size, place);
    Meeting along = last_axis(at, place[2]);
    std::vector<Piece<T>> pieces;
    meet(at, place, along, lhs, at.lhs, rhs, at.rhs, rows * part / parts, rows * (part + 1) / parts, &pieces);
    T* own = sums.get() + task * at.groups;
    std::fill_n(own, at.groups, T(0));
    for (const Piece<T>& piece : pieces) {
      loops.correlate_channels(piece.a, along.m_step * at.lhs.space[2], piece.b, along.p_step * at.rhs.space[2],
                               piece.length, at.groups, own);
    }
  });
  for (int64_t index = 0; index < places; ++index) {
    int64_t place[kAxes];
    unravel(index, at.out_size, place);
    for (int64_t group = 0; group < at.groups; ++group) {
      T total = 0;
      for (int64_t part = 0; part < parts; ++part) total += sums[(part * places + index) * at.groups + group];
      out[group * at.out_group + offset(place, at.out)] = total;
    }
  }
}

}  // namespace

template <class T>
void convolve_wide(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  Wide<T>(workers, at, lhs, rhs, out).run();
}

template <class T>
void convolve_wide_by_channel(Workers& workers, const Convolution& at, const T* lhs, const T* rhs, T* out) {
  if (at.lhs_group == 1 && at.rhs_group == 1) {
    by_channels(workers, at, lhs, rhs, out);
  } else {
    by_rows(workers, at, lhs, rhs, out);
  }
}

template void convolve_wide(Workers&, const Convolution&, const float*, const float*, float*);
template void convolve_wide(Workers&, const Convolution&, const double*, const double*, double*);
template void convolve_wide_by_channel(Workers&, const Convolution&, const float*, const float*, float*);
template void convolve_wide_by_channel(Workers&, const Convolution&, const double*, const double*, double*);

}  // namespace purax
