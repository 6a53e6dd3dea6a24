// The greeter of the benchmark in Go: JSON in, JSON out.
package main

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"strconv"
	"unsafe"
)

//go:wasmimport plugin_host input_len
func inputLen(kind int32) int32

//go:wasmimport plugin_host input_read
func inputRead(kind int32, to unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host result_read
func resultRead(to unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host respond
func respond(status int32, headers unsafe.Pointer, headersLength int32, body unsafe.Pointer, bodyLength int32) int32

//go:wasmimport plugin_host fail
func fail(text unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host kv_get
func kvGet(key unsafe.Pointer, length int32) int32

//go:wasmimport plugin_host kv_set
func kvSet(key unsafe.Pointer, length int32, value unsafe.Pointer, valueLength int32, ttlSeconds int32) int32

const jsonHeaders = `{"Content-Type":"application/json"}`

type event struct {
	Trigger string `json:"trigger"`
	HTTP    struct {
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Query   map[string]string `json:"query"`
		Headers map[string]string `json:"headers"`
	} `json:"http"`
}

type answer struct {
	Message string   `json:"message"`
	Visits  int      `json:"visits,omitempty"`
	Numbers []uint64 `json:"numbers,omitempty"`
}

func text(s string) (unsafe.Pointer, int32) { return unsafe.Pointer(unsafe.StringData(s)), int32(len(s)) }

func readInput() []byte {
	bytes := make([]byte, inputLen(0))
	inputRead(0, unsafe.Pointer(unsafe.SliceData(bytes)), int32(len(bytes)))
	return bytes
}

// visit counts one visit and returns the number of visits, or less than zero if the host refuses.
func visit(name string) int {
	key, length := text("visits:" + name)
	visits := 1
	if n := kvGet(key, length); n >= 0 {
		value := make([]byte, n)
		resultRead(unsafe.Pointer(unsafe.SliceData(value)), n)
		before, _ := strconv.Atoi(string(value))
		visits += before
	}
	value, valueLength := text(strconv.Itoa(visits))
	if code := kvSet(key, length, value, valueLength, 0); code < 0 {
		return int(code)
	}
	return visits
}

func decide(input []byte) ([]byte, error) {
	var e event
	if err := json.Unmarshal(input, &e); err != nil {
		return nil, err
	}
	name := e.HTTP.Query["name"]
	if name == "" {
		name = "world"
	}
	a := answer{Message: "Hello, " + name + "!"}
	switch e.Trigger {
	case "visit":
		a.Visits = visit(name)
	case "draw":
		a.Numbers = []uint64{rand.Uint64() >> 11, rand.Uint64() >> 11}
	}
	return json.Marshal(a)
}

// What the start has decoded and encoded once costs no execution its preparation again.
func init() {
	decide([]byte(`{"trigger":"greet","http":{"method":"GET","path":"/","query":{"name":"x"},"headers":{"host":"x"}}}`))
}

func handle() error {
	// The start is remembered, so each execution needs random numbers of its own.
	runtime.ReseedRandom()
	body, err := decide(readInput())
	if err != nil {
		return err
	}
	headers, headersLength := text(jsonHeaders)
	respond(200, headers, headersLength, unsafe.Pointer(unsafe.SliceData(body)), int32(len(body)))
	return nil
}

//go:wasmexport plugin_handle
func pluginHandle() int32 {
	err := handle()
	if err == nil {
		return 0
	}
	message, length := text(err.Error())
	fail(message, length)
	return -7
}

func main() {}
