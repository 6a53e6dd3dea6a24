package main

import "encoding/binary"

const (
	fnvStart = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
)

// fnv carries on FNV-1a over words of 64 bits, and over the bytes behind the last whole word.
func fnv(state uint64, chunk []byte) uint64 {
	for ; len(chunk) >= 8; chunk = chunk[8:] {
		state = (state ^ binary.LittleEndian.Uint64(chunk)) * fnvPrime
	}
	for _, b := range chunk {
		state = (state ^ uint64(b)) * fnvPrime
	}
	return state
}
