#include "keys.h"

namespace purax {
namespace {

template <class Bits>
struct Unsigned {
  using bits_type = Bits;
  static Bits key(Bits x) { return x; }
  static Bits element(Bits key) { return key; }
  static Bits without_sign(Bits x) { return x; }
};

template <class Bits>
struct Signed {
  using bits_type = Bits;
  static constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
  static Bits key(Bits x) { return x ^ sign; }
  static Bits element(Bits key) { return key ^ sign; }
  static Bits without_sign(Bits x) { return x; }
};

// `infinity` is the bit pattern of ∞: what is larger without its sign is NaN.
template <class Bits, Bits infinity>
struct Float {
  using bits_type = Bits;
  static constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
  static constexpr Bits nan = Bits(infinity | (infinity >> 1));
  static Bits key(Bits x) {
    Bits canonical = Bits(x & Bits(~sign)) > infinity ? nan : x;
    return canonical & sign ? Bits(~canonical) : Bits(canonical | sign);
  }
  static Bits element(Bits key) { return key & sign ? Bits(key & Bits(~sign)) : Bits(~key); }
  static Bits without_sign(Bits x) { return x == sign ? Bits(0) : x; }  // of zeros
};

template <class Key, class Kind, bool equal_zeros>
void to_keys(const void* x, int64_t stride, int64_t count, Key* keys) {
  using Bits = typename Kind::bits_type;
  auto* from = static_cast<const Bits*>(x);
  for (int64_t i = 0; i < count; ++i) {
    Bits bits = from[i * stride];
    keys[i] = Kind::key(equal_zeros ? Kind::without_sign(bits) : bits);
  }
}

template <class Key, class Kind>
void from_keys(const Key* keys, void* x, int64_t stride, int64_t count) {
  using Bits = typename Kind::bits_type;
  auto* to = static_cast<Bits*>(x);
  for (int64_t i = 0; i < count; ++i) to[i * stride] = Kind::element(Bits(keys[i]));
}

template <class Key, class Kind>
const Order<Key>& order() {
  static const Order<Key> own{to_keys<Key, Kind, false>, to_keys<Key, Kind, true>, from_keys<Key, Kind>};
  return own;
}

}  // namespace

int64_t width_of(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::PRED: case ffi::DataType::U8: case ffi::DataType::S8: return 1;
    case ffi::DataType::U16: case ffi::DataType::S16: case ffi::DataType::F16: case ffi::DataType::BF16: return 2;
    case ffi::DataType::U32: case ffi::DataType::S32: case ffi::DataType::F32: return 4;
    case ffi::DataType::U64: case ffi::DataType::S64: case ffi::DataType::F64: return 8;
    default: return 0;
  }
}

template <>
const Order<uint32_t>& order_of<uint32_t>(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::PRED:
    case ffi::DataType::U8: return order<uint32_t, Unsigned<uint8_t>>();
    case ffi::DataType::U16: return order<uint32_t, Unsigned<uint16_t>>();
    case ffi::DataType::S8: return order<uint32_t, Signed<uint8_t>>();
    case ffi::DataType::S16: return order<uint32_t, Signed<uint16_t>>();
    case ffi::DataType::S32: return order<uint32_t, Signed<uint32_t>>();
    case ffi::DataType::F16: return order<uint32_t, Float<uint16_t, 0x7C00>>();
    case ffi::DataType::BF16: return order<uint32_t, Float<uint16_t, 0x7F80>>();
    case ffi::DataType::F32: return order<uint32_t, Float<uint32_t, 0x7F800000u>>();
    default: return order<uint32_t, Unsigned<uint32_t>>();
  }
}

template <>
const Order<uint64_t>& order_of<uint64_t>(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::S64: return order<uint64_t, Signed<uint64_t>>();
    case ffi::DataType::F64: return order<uint64_t, Float<uint64_t, 0x7FF0000000000000ull>>();
    default: return order<uint64_t, Unsigned<uint64_t>>();
  }
}

}  // namespace purax
