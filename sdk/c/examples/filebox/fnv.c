#include "fnv.h"

#include <string.h>

#define FNV_PRIME 0x100000001b3u

uint64_t fnv(uint64_t state, const char *chunk, size_t length) {
  const char *end = chunk + length;
  uint64_t word;
  for (; (size_t)(end - chunk) >= sizeof word; chunk += sizeof word) {
    memcpy(&word, chunk, sizeof word);
    state = (state ^ word) * FNV_PRIME;
  }
  for (; chunk < end; chunk++) state = (state ^ (unsigned char)*chunk) * FNV_PRIME;
  return state;
}
