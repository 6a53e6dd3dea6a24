package pluginhost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unsafe"
)

// encode gives a value as JSON. Unlike json.Marshal it keeps <, > and &, because it is not written into HTML.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

func asJSON(value any) (unsafe.Pointer, int32, error) {
	b, err := encode(value)
	p, n := raw(b)
	return p, n, err
}

// ---------- other hosts: the requirement HTTP ----------

// HTTPOrder is a request to another host.
type HTTPOrder struct {
	// Method is GET when it is empty.
	Method  string
	URL     string
	Headers map[string]string
	Body    []byte
	Timeout time.Duration
}

// HTTPResponse is what a server outside answered.
type HTTPResponse struct {
	Status int `json:"status"`
	// Headers by names in lower case; several values of one name are one list with commas.
	Headers map[string]string `json:"headers"`
	// URL is where the answer came from, behind redirects.
	URL  string `json:"url"`
	Body []byte `json:"-"`
}

// Header gives a header by any spelling; empty when it is absent.
func (r *HTTPResponse) Header(name string) string { return r.Headers[strings.ToLower(name)] }

// HTTPRequest sends a request. An answer with status 404 or 500 is no error.
func (c *Context) HTTPRequest(order HTTPOrder) (*HTTPResponse, error) {
	wire := map[string]any{"url": order.URL}
	if order.Method != "" {
		wire["method"] = order.Method
	}
	if order.Headers != nil {
		wire["headers"] = order.Headers
	}
	if order.Timeout > 0 {
		wire["timeout_ms"] = order.Timeout.Milliseconds()
	}
	o, n, err := asJSON(wire)
	if err != nil {
		return nil, err
	}
	b, bn := raw(order.Body)
	var response HTTPResponse
	if err := parkedJSON(hostHTTPRequest(o, n, b, bn), &response); err != nil {
		return nil, err
	}
	response.Body = parkedBody()
	return &response, nil
}

// HTTPGet asks for an address.
func (c *Context) HTTPGet(url string) (*HTTPResponse, error) {
	return c.HTTPRequest(HTTPOrder{URL: url})
}

// HTTPPost sends a body to an address.
func (c *Context) HTTPPost(url, contentType string, body []byte) (*HTTPResponse, error) {
	headers := map[string]string{"Content-Type": contentType}
	return c.HTTPRequest(HTTPOrder{Method: "POST", URL: url, Headers: headers, Body: body})
}

// ---------- messages: the requirement NotifyReq ----------

// Message is a message to be sent: a text, files, or both; made by NewMessage.
type Message struct {
	Text  string       `json:"text"`
	Files []attachment `json:"files,omitempty"`
}

type attachment struct {
	File    FileRef `json:"file"`
	Caption string  `json:"caption,omitempty"`
}

// NewMessage makes a message; the text may be empty when files are attached.
func NewMessage(text string) *Message { return &Message{Text: text} }

// File attaches a file; may be called several times.
func (m *Message) File(file FileRef, caption string) *Message {
	m.Files = append(m.Files, attachment{file, caption})
	return m
}

// IncomingMessage is a message with a command, as it came in.
type IncomingMessage struct {
	Channel string `json:"channel"`
	ChatID  string `json:"chat_id"`
	// UserID is the user who has linked the account; nil for an account that is not linked.
	UserID *int64 `json:"user_id"`
	// Text is all of the text, with the command.
	Text string `json:"text"`
	// Args are the words behind the command.
	Args  []string  `json:"args"`
	Files []FileRef `json:"files"`
}

// HasFiles says whether the message has files.
func (c *Context) HasFiles() bool { return len(c.Files()) > 0 }

// Files gives the files of the message.
func (c *Context) Files() []FileRef {
	if c.Message == nil {
		return nil
	}
	return c.Message.Files
}

// NotifyUser writes to a user, on the user's primary channel.
func (c *Context) NotifyUser(userID int64, message *Message) error {
	m, n, err := asJSON(message)
	if err != nil {
		return err
	}
	return check(hostNotifyUser(userID, m, n))
}

// NotifyChat writes to a chat that has written before.
func (c *Context) NotifyChat(chatID string, message *Message) error {
	m, n, err := asJSON(message)
	if err != nil {
		return err
	}
	p, pn := text(chatID)
	return check(hostNotifyChat(p, pn, m, n))
}

// StudentFilter says which students a message is for; made by Students. What is not named does not matter; a list
// that is named and empty fits no student.
type StudentFilter struct{ order map[string]any }

// Students begins a filter: pluginhost.Students().Groups("21-1").Where("locale", "ru").
func Students() StudentFilter {
	return StudentFilter{}
}

func (f StudentFilter) with(name string, value any) StudentFilter {
	order := map[string]any{name: value}
	for other, already := range f.order {
		if other != name {
			order[other] = already
		}
	}
	return StudentFilter{order}
}

func (f StudentFilter) list(name string, values []string) StudentFilter {
	return f.with(name, append([]string{}, values...))
}

// Streams asks for those of one of these streams, by their external ids.
func (f StudentFilter) Streams(ids ...string) StudentFilter { return f.list("streams", ids) }

// Groups asks for those of one of these study groups.
func (f StudentFilter) Groups(ids ...string) StudentFilter { return f.list("groups", ids) }

// Subgroups asks for those of one of these subgroups.
func (f StudentFilter) Subgroups(ids ...string) StudentFilter { return f.list("subgroups", ids) }

// Where asks for those who have one of the values of nationality_type, funding_type, education_form, locale or
// primary_channel.
func (f StudentFilter) Where(attribute string, values ...string) StudentFilter {
	return f.list(attribute, values)
}

// All means every student.
func (f StudentFilter) All() StudentFilter { return f.with("all", true) }

// MarshalJSON is how the host reads the filter.
func (f StudentFilter) MarshalJSON() ([]byte, error) {
	if f.order == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(f.order)
}

// Queued is how many messages were queued, and how many students cannot be reached.
type Queued struct {
	Queued      int `json:"queued"`
	Unreachable int `json:"unreachable"`
}

// NotifyStudents writes to all students a filter selects.
func (c *Context) NotifyStudents(filter StudentFilter, message *Message) (Queued, error) {
	var queued Queued
	f, fn, err := asJSON(filter)
	if err != nil {
		return queued, err
	}
	m, n, err := asJSON(message)
	if err != nil {
		return queued, err
	}
	err = parkedJSON(hostNotifyStudents(f, fn, m, n), &queued)
	return queued, err
}

// ---------- events: the requirement EventsReq ----------

// PublishEvent publishes an event; once it returns nil it is stored and will be delivered.
func (c *Context) PublishEvent(name string, payload any) error {
	p, pn := text(name)
	b, n, err := asJSON(payload)
	if err != nil {
		return err
	}
	return check(hostEventPublish(p, pn, b, n))
}

// ---------- other plugins: the requirement PluginDep ----------

// CallPluginRaw calls a function of another plugin with bytes and gives its answer.
func (c *Context) CallPluginRaw(target, name string, data []byte) ([]byte, error) {
	t, tn := text(target)
	f, fn := text(name)
	b, n := raw(data)
	length := hostPluginCall(t, tn, f, fn, b, n)
	if err := check(length); err != nil {
		return nil, err
	}
	return parked(length), nil
}

// CallPluginInto calls a function of another plugin with a value and reads its answer, which is JSON.
func (c *Context) CallPluginInto(target, name string, value, into any) error {
	b, err := encode(value)
	if err != nil {
		return err
	}
	answer, err := c.CallPluginRaw(target, name, b)
	if err != nil {
		return err
	}
	return json.Unmarshal(orNull(answer), into)
}

// orNull reads the answer of a function that gave none as null.
func orNull(answer []byte) []byte {
	if len(answer) == 0 {
		return []byte("null")
	}
	return answer
}

// CallPlugin calls a function of another plugin with a value and gives its answer. Numbers are json.Number, so that
// none loses digits; CallPluginInto reads an answer into a type of yours.
func (c *Context) CallPlugin(target, name string, value any) (any, error) {
	b, err := encode(value)
	if err != nil {
		return nil, err
	}
	raw, err := c.CallPluginRaw(target, name, b)
	if err != nil {
		return nil, err
	}
	var answer any
	decoder := json.NewDecoder(bytes.NewReader(orNull(raw)))
	decoder.UseNumber()
	err = decoder.Decode(&answer)
	return answer, err
}

// ---------- files: the requirement File ----------

// FileRef is a file as the host knows it; its content is read with ctx.FileRead and its like.
type FileRef struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"size"`
	// FileType is photo, document, audio, video, voice or sticker.
	FileType string `json:"file_type"`
}

const (
	chunkMax  = 1 << 20
	endOfFile = 1 << 30
	// wholeMax is because the memory of an execution holds several copies of a file that is read whole.
	wholeMax = 64 << 20
)

// FileMeta gives what the host knows of a file.
func (c *Context) FileMeta(fileID string) (FileRef, error) {
	p, n := text(fileID)
	var ref FileRef
	err := parkedJSON(hostFileMeta(p, n), &ref)
	return ref, err
}

func readInto(fileID string, offset int64, buffer []byte) (int, bool, error) {
	p, n := text(fileID)
	b, bn := raw(buffer)
	code := hostFileReadInto(p, n, offset, b, bn)
	if err := check(code); err != nil {
		return 0, false, err
	}
	return int(code &^ endOfFile), code&endOfFile != 0, nil
}

// FileRead reads a part: at most 1 MB, which is also what maxBytes 0 means. The bool says whether the file ends there.
func (c *Context) FileRead(fileID string, offset, maxBytes int64) ([]byte, bool, error) {
	if maxBytes <= 0 || maxBytes > chunkMax {
		maxBytes = chunkMax
	}
	buffer := make([]byte, maxBytes)
	n, eof, err := readInto(fileID, offset, buffer)
	return buffer[:n], eof, err
}

// FileReadAll reads a whole file.
func (c *Context) FileReadAll(fileID string) ([]byte, error) {
	ref, err := c.FileMeta(fileID)
	if err != nil {
		return nil, err
	}
	if ref.Size > wholeMax {
		return nil, &HostError{Code: CodeTooLarge, Message: fmt.Sprintf("the file has %d bytes, more than 64 MiB: read it in parts with FileRead", ref.Size)}
	}
	content := make([]byte, ref.Size)
	for at := 0; ; {
		n, eof, err := readInto(fileID, int64(at), content[at:min(at+chunkMax, len(content))])
		if err != nil {
			return nil, err
		}
		at += n
		if eof || n == 0 {
			return content[:at], nil
		}
	}
}

// FileURL gives an address at which the file can be read for a while; empty when the store has no such links.
func (c *Context) FileURL(fileID string) (string, error) {
	p, n := text(fileID)
	length := hostFileURL(p, n)
	if err := check(length); err != nil {
		return "", err
	}
	return string(parked(length)), nil
}

// FileStore stores a new file.
func (c *Context) FileStore(name, mimeType, fileType string, data []byte) (FileRef, error) {
	return c.FileStoreWithTTL(name, mimeType, fileType, data, 0)
}

// FileStoreWithTTL stores a file that is deleted after a time.
func (c *Context) FileStoreWithTTL(name, mimeType, fileType string, data []byte, ttl time.Duration) (FileRef, error) {
	order := map[string]any{"name": name, "mime_type": mimeType, "file_type": fileType}
	if ttl != 0 {
		order["ttl_ms"] = units(ttl, time.Millisecond)
	}
	var ref FileRef
	o, n, err := asJSON(order)
	if err != nil {
		return ref, err
	}
	d, dn := raw(data)
	err = parkedJSON(hostFileStore(o, n, d, dn), &ref)
	return ref, err
}
