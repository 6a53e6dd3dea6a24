package pluginhost

import "runtime"

// ErrorCode says why the host refused a call.
type ErrorCode string

// Codes of refused calls.
const (
	CodePermissionDenied ErrorCode = "permission_denied"
	CodeNotFound         ErrorCode = "not_found"
	CodeInvalidArgument  ErrorCode = "invalid_argument"
	CodeTooLarge         ErrorCode = "too_large"
	CodeUnavailable      ErrorCode = "unavailable"
	CodeDeadlinePassed   ErrorCode = "deadline_passed"
	CodeInternal         ErrorCode = "internal"
	CodeConflict         ErrorCode = "conflict"
)

var codes = []ErrorCode{
	CodePermissionDenied, CodeNotFound, CodeInvalidArgument, CodeTooLarge,
	CodeUnavailable, CodeDeadlinePassed, CodeInternal, CodeConflict,
}

// HostError is a call the host refused. Message is its text; of a database it begins with the SQLSTATE.
type HostError struct {
	Code    ErrorCode
	Message string
	// callers are where the call was made, for the record of an execution that fails with it.
	callers []uintptr
}

func (e *HostError) Error() string { return e.Message }

// Is makes errors.Is(err, pluginhost.ErrNotFound) true for each error with that code.
func (e *HostError) Is(target error) bool {
	other, ok := target.(*HostError)
	return ok && other.Message == "" && other.Code == e.Code
}

// Errors to compare with by errors.Is.
var (
	ErrPermissionDenied = &HostError{Code: CodePermissionDenied}
	ErrNotFound         = &HostError{Code: CodeNotFound}
	ErrConflict         = &HostError{Code: CodeConflict}
)

const resultNotFound = -2

// check turns a result below zero into an error.
func check(result int32) error {
	if result >= 0 {
		return nil
	}
	code := CodeInternal
	if k := int(-1 - result); k < len(codes) {
		code = codes[k]
	}
	callers := make([]uintptr, 16)
	return &HostError{Code: code, Message: lastError(), callers: callers[:runtime.Callers(2, callers)]}
}
