package pluginhost

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// HTTPAuthInfo is the principal the host has let in.
type HTTPAuthInfo struct {
	// Kind is "user" or "service".
	Kind         string `json:"kind"`
	UserID       int64  `json:"user_id"`
	ServiceKeyID int64  `json:"service_key_id"`
}

// HTTPRequest is the request to an HTTP trigger.
type HTTPRequest struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	// Query has of a name that is given several times the last value.
	Query map[string]string `json:"query"`
	// QueryAll has all values of each name, in the order they were sent.
	QueryAll map[string][]string `json:"query_all"`
	// RawQuery is the query as it was sent, without "?".
	RawQuery string `json:"raw_query"`
	// Headers by names in lower case.
	Headers map[string]string `json:"headers"`
	// Params are values of the :name segments of the path.
	Params     map[string]string `json:"params"`
	RemoteAddr string            `json:"remote_addr"`
	// Auth is nil for a public trigger.
	Auth *HTTPAuthInfo `json:"auth"`
}

// Body is the body of the request as text.
func (r *HTTPRequest) Body() string { return string(input(1)) }

// BodyBytes is the body of the request.
func (r *HTTPRequest) BodyBytes() []byte { return input(1) }

// JSON reads the body into a value.
func (r *HTTPRequest) JSON(into any) error { return json.Unmarshal(input(1), into) }

// PluginCall is what another plugin asked for.
type PluginCall struct {
	// From is the id of the plugin that calls.
	From     string        `json:"from"`
	Function string        `json:"function"`
	Auth     *HTTPAuthInfo `json:"auth"`
}

// Bytes is what the caller gave.
func (c *PluginCall) Bytes() []byte { return input(1) }

// Value reads what the caller gave as JSON.
func (c *PluginCall) Value(into any) error { return json.Unmarshal(input(1), into) }

// Context is what a handler has of its execution: the event, and the functions of the host.
type Context struct {
	Trigger   string
	RequestID string
	// HTTP is nil unless an HTTP trigger is handled.
	HTTP *HTTPRequest
	// Message is nil unless a messenger trigger is handled.
	Message *IncomingMessage
	// Call is nil unless a function is handled.
	Call *PluginCall
}

// JSON answers with JSON.
func (c *Context) JSON(status int, value any) error {
	body, err := encode(value)
	if err != nil {
		return err
	}
	return respond(status, jsonHeaders, body)
}

const jsonHeaders = `{"Content-Type":"application/json"}`

// SetHTTPResponse answers with any status, headers (nil: none) and body. The host drops headers that act beyond the answer.
func (c *Context) SetHTTPResponse(status int, headers map[string]string, body string) error {
	return c.SetHTTPResponseBytes(status, headers, []byte(body))
}

// SetHTTPResponseBytes is SetHTTPResponse with bytes.
func (c *Context) SetHTTPResponseBytes(status int, headers map[string]string, body []byte) error {
	if headers == nil {
		headers = map[string]string{}
	}
	h, err := encode(headers)
	if err != nil {
		return err
	}
	return respond(status, string(h), body)
}

func respond(status int, headers string, body []byte) error {
	h, hn := text(headers)
	b, bn := raw(body)
	return check(hostRespond(int32(status), h, hn, b, bn))
}

// Reply answers a command with a message; may be called 20 times.
func (c *Context) Reply(message *Message) error {
	m, n, err := asJSON(message)
	if err != nil {
		return err
	}
	return check(hostReply(m, n))
}

// Output answers a call of another plugin with a value.
func (c *Context) Output(value any) error {
	b, err := encode(value)
	if err != nil {
		return err
	}
	return c.OutputBytes(b)
}

// OutputBytes answers a call of another plugin with bytes.
func (c *Context) OutputBytes(b []byte) error {
	p, n := raw(b)
	return check(hostOutput(p, n))
}

// Log writes a line of the execution record.
func (c *Context) Log(line string) { p, n := text(line); hostLog(1, p, n) }

// LogError writes a line of the execution record, as an error.
func (c *Context) LogError(line string) { p, n := text(line); hostLog(3, p, n) }

// Config is a field of the configuration; empty when the administrator has left it empty.
func (c *Context) Config(name string) string {
	p, n := text(name)
	length := hostConfigGet(p, n)
	if length < 0 {
		return ""
	}
	return string(parked(length))
}

// Info is what a host speaks and allows.
type Info struct {
	ABI      int            `json:"abi"`
	Limits   map[string]any `json:"limits"`
	Features []string       `json:"features"`
}

// HostInfo asks what this host speaks and allows.
func (c *Context) HostInfo() (Info, error) {
	var info Info
	err := parkedJSON(hostInfo(), &info)
	return info, err
}

func parkedJSON(length int32, into any) error {
	if err := check(length); err != nil {
		return err
	}
	return json.Unmarshal(parked(length), into)
}

// ---------- key-value store: the requirement KV ----------

// KVGet gives the value of a key; ErrNotFound when it is absent.
func (c *Context) KVGet(key string) (string, error) {
	b, err := c.KVGetBytes(key)
	return string(b), err
}

// KVGetBytes is KVGet with bytes.
func (c *Context) KVGetBytes(key string) ([]byte, error) {
	p, n := text(key)
	length := hostKVGet(p, n)
	if err := check(length); err != nil {
		return nil, err
	}
	return parked(length), nil
}

// KVGetMany gives the values of at most 100 keys; absent ones are left out.
func (c *Context) KVGetMany(keys []string) (map[string]string, error) {
	list, err := encode(keys)
	if err != nil {
		return nil, err
	}
	p, n := raw(list)
	var encoded map[string]*string
	if err := parkedJSON(hostKVGetMany(p, n), &encoded); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range encoded {
		if value == nil {
			continue
		}
		b, err := base64.StdEncoding.DecodeString(*value)
		if err != nil {
			return nil, err
		}
		values[key] = string(b)
	}
	return values, nil
}

// units rounds a time up to whole units: rounded down, a short time would mean for ever.
func units(ttl, unit time.Duration) int64 {
	if ttl < 0 {
		return -1
	}
	return int64((ttl + unit - 1) / unit)
}

func seconds(ttl time.Duration) int32 { return int32(min(units(ttl, time.Second), math.MaxInt32)) }

// KVSet writes a value; with a ttl it is gone after that time, rounded up to whole seconds. 0 means no end.
func (c *Context) KVSet(key, value string, ttl time.Duration) error {
	return c.KVSetBytes(key, []byte(value), ttl)
}

// KVSetBytes is KVSet with bytes.
func (c *Context) KVSetBytes(key string, value []byte, ttl time.Duration) error {
	p, n := text(key)
	v, vn := raw(value)
	return check(hostKVSet(p, n, v, vn, seconds(ttl)))
}

// KVUpdate is what became of a conditional write.
type KVUpdate struct {
	Written bool
	// Present is the value that stood in its way; nil when the key is absent.
	Present *string
}

// KVSetIfAbsent writes only if the key is absent: to claim something that only one caller may have.
func (c *Context) KVSetIfAbsent(key, value string, ttl time.Duration) (KVUpdate, error) {
	return kvUpdate(key, 0, "", value, ttl)
}

// KVCompareAndSet writes only if the value is expected: to change what was read before.
func (c *Context) KVCompareAndSet(key, expected, value string, ttl time.Duration) (KVUpdate, error) {
	return kvUpdate(key, 1, expected, value, ttl)
}

func kvUpdate(key string, mode int32, expected, value string, ttl time.Duration) (KVUpdate, error) {
	p, n := text(key)
	e, en := text(expected)
	v, vn := text(value)
	code := hostKVUpdate(p, n, mode, e, en, v, vn, seconds(ttl))
	if err := check(code); err != nil {
		return KVUpdate{}, err
	}
	if code == 1 {
		return KVUpdate{Written: true}, nil
	}
	// One byte says whether there is a value: an empty one is not an absent one.
	if parked(1)[0] == 0 {
		return KVUpdate{}, nil
	}
	present := string(parkedBody())
	return KVUpdate{Present: &present}, nil
}

// KVIncrement adds to a whole number, an absent one counts as 0, and gives the sum.
func (c *Context) KVIncrement(key string, delta int64, ttl time.Duration) (int64, error) {
	p, n := text(key)
	length := hostKVIncrement(p, n, delta, seconds(ttl))
	if err := check(length); err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(parked(length)), 10, 64)
}

// KVDelete removes a key and says whether it was there.
func (c *Context) KVDelete(key string) (bool, error) {
	p, n := text(key)
	code := hostKVDelete(p, n)
	return code == 1, check(code)
}

// KeyPage is keys in order, and the key to go on after; empty at the end.
type KeyPage struct {
	Keys []string `json:"keys"`
	Next string   `json:"next"`
}

// KVList lists keys that begin with prefix, behind the key after; at most limit (0: 1000).
func (c *Context) KVList(prefix, after string, limit int) (KeyPage, error) {
	p, pn := text(prefix)
	a, an := text(after)
	var page KeyPage
	err := parkedJSON(hostKVList(p, pn, a, an, int32(limit)), &page)
	return page, err
}
