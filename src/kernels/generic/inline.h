// LOCKSTEP_VEC: how the words of the vector vocabulary and what is built from them are declared.
// Always inline, since a vector must never cross a call boundary between target regions.
#pragma once

#define LOCKSTEP_VEC [[gnu::always_inline]] inline
