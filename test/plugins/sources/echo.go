// Echo: logs through fmt, answers the request body. Built by the test where a Go toolchain is at hand.
package main

import (
	"fmt"
	"unsafe"
)

//go:wasmimport plugin_host input_len
func inputLen(kind int32) int32

//go:wasmimport plugin_host input_read
func inputRead(kind int32, p unsafe.Pointer, n int32) int32

//go:wasmimport plugin_host output
func output(p unsafe.Pointer, n int32) int32

//go:wasmimport plugin_host respond
func respond(status int32, h unsafe.Pointer, hn int32, b unsafe.Pointer, bn int32) int32

const manifest = `{"abi":4,"id":"go_echo","name":"Echo in go","version":"1.0.0","requirements":[],"triggers":[{"name":"echo","type":"http","path":"/echo","methods":["POST"]}]}`

//go:wasmexport plugin_describe
func describe() int32 {
	return output(unsafe.Pointer(unsafe.StringData(manifest)), int32(len(manifest)))
}

//go:wasmexport plugin_handle
func handle() int32 {
	n := inputLen(1)
	b := make([]byte, n+1)
	inputRead(1, unsafe.Pointer(&b[0]), n)
	fmt.Printf("echo of %d bytes\n", n)
	h := `{"X-Lang":"go"}`
	return respond(200, unsafe.Pointer(unsafe.StringData(h)), int32(len(h)), unsafe.Pointer(&b[0]), n)
}

func main() {}
