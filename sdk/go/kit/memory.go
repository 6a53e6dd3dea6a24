package pluginhost

import "unsafe"

// text gives the address and length of a string, as the host takes them.
func text(s string) (unsafe.Pointer, int32) {
	return unsafe.Pointer(unsafe.StringData(s)), int32(len(s))
}

// raw gives the address and length of bytes.
func raw(b []byte) (unsafe.Pointer, int32) { return unsafe.Pointer(unsafe.SliceData(b)), int32(len(b)) }

// parked reads what the last call has parked.
func parked(length int32) []byte {
	b := make([]byte, length)
	if length > 0 {
		p, n := raw(b)
		resultRead(p, n)
	}
	return b
}

// parkedBody reads the raw part of the last result.
func parkedBody() []byte {
	b := make([]byte, bodyLen())
	if len(b) > 0 {
		p, n := raw(b)
		bodyRead(0, p, n)
	}
	return b
}

func lastError() string {
	b := make([]byte, errorLen())
	if len(b) > 0 {
		p, n := raw(b)
		errorRead(p, n)
	}
	return string(b)
}

func input(kind int32) []byte {
	n := inputLen(kind)
	if n <= 0 {
		return nil
	}
	b := make([]byte, n)
	p, l := raw(b)
	inputRead(kind, p, l)
	return b
}
