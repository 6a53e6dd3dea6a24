#ifndef FNV_H
#define FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START 0xcbf29ce484222325u

/** Carries on FNV-1a over words of 64 bits, and over the bytes behind the last whole word. */
uint64_t fnv(uint64_t state, const char *chunk, size_t length);

#endif
