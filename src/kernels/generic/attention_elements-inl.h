// The 16-bit elements of a cache, as types of their own so that each loads in its own way. A
// fragment: included first inside the namespace of an instruction set, so that calls in its
// templates find the words for them.

// Sixteen of them are eight words: word i holds lane i in its low half and lane i + 8 in its high
// half, so that two operations on words widen all. Eight alone are in order.
struct Bf16 {
  uint16_t bits;
};

// In order.
struct F16 {
  uint16_t bits;
};
