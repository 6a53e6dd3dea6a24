// Package plugintest tests a plugin against its built module, in the sandbox of the service:
//
//	func TestGreets(t *testing.T) {
//		host := plugintest.Start(t, plugintest.Options{})
//		answer := host.HTTP("GET /greet/Ada", plugintest.As{User: 7})
//		if answer.Status != 200 {
//			t.Fatal(answer.Status, answer.Failure)
//		}
//	}
//
// plugin-host plugin test runs such tests; go test does, too, where plugin-host is in PATH. What the plugin stores and sends
// is kept in memory, and stays from call to call of one host. Databases are not there.
package plugintest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Options of a host.
type Options struct {
	// Folder of the plugin; without it the nearest one upwards that has a plugin-host.json.
	Folder string
	// Config has the values of the plugin's configuration.
	Config map[string]string
	// Timeout is the longest time of an execution; 5 s without it.
	Timeout time.Duration
	// HTTP answers requests to other hosts; without it none can be reached.
	HTTP func(request Request) Response
	// Plugins has functions of other plugins, by plugin and name. They get JSON and give a value that is sent as JSON.
	Plugins map[string]map[string]func(value json.RawMessage) any
}

// Access is what policies see of the user of a call; what is left out is empty.
type Access struct {
	Roles []string `json:"roles,omitempty"`
	// Groups are the study groups the user is a member of.
	Groups []string `json:"groups,omitempty"`
	// Permissions are what the relationship graph gives, like "admin faculty:physics".
	Permissions     []string `json:"permissions,omitempty"`
	ExternalID      string   `json:"external_id,omitempty"`
	Locale          string   `json:"locale,omitempty"`
	PrimaryChannel  string   `json:"primary_channel,omitempty"`
	NationalityType string   `json:"nationality_type,omitempty"`
	FundingType     string   `json:"funding_type,omitempty"`
	EducationForm   string   `json:"education_form,omitempty"`
}

// As says who a call is from, and what the plugin has.
type As struct {
	// User or ServiceKey is the number of the caller; without both there is none.
	User, ServiceKey int64
	Headers          map[string]string
	// Body is text, bytes, or a value that is sent as JSON.
	Body any
	// Access lets the access that the plugin suggests decide first, for a user who has this; without it every call of
	// an HTTP trigger is let in.
	Access *Access
	// KV is set before the call; what was there stays.
	KV map[string]string
	// Grant has the permissions the administrator has granted, such as "kv"; all the plugin requires without it.
	Grant []string
	// Files are ids of files that come with a message.
	Files []string
	// From is the plugin that calls a function.
	From string
}

// Request is one the plugin sent to another host.
type Request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

// Response is what another host answers; its status is 200 without one.
type Response struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// Log is a line the plugin has logged.
type Log struct {
	Level string `json:"level"`
	Text  string `json:"text"`
}

// Ended is how an execution ended, and what it said.
type Ended struct {
	// Outcome is ok, handler_error, trapped, deadline ...
	Outcome string `json:"outcome"`
	// Failure is why it failed, with your files and lines; empty when it did not.
	Failure string `json:"failure"`
	Logs    []Log  `json:"logs"`
}

// Answer of an HTTP trigger; Headers have names in lower case.
type Answer struct {
	Ended
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

// Text is the body as text.
func (a Answer) Text() string { return string(a.Body) }

// JSON reads the body.
func (a Answer) JSON(into any) error { return json.Unmarshal(a.Body, into) }

// Attachment is a file of a message, by its id.
type Attachment struct {
	File struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"file"`
	Caption string `json:"caption"`
}

// Message is one the plugin sent.
type Message struct {
	Text  string       `json:"text"`
	Files []Attachment `json:"files"`
}

// Replied is how a command ended, with the replies.
type Replied struct {
	Ended
	Replies []Message `json:"replies"`
}

// Returned is how a function ended, with what it gave.
type Returned struct {
	Ended
	Bytes []byte `json:"bytes"`
}

// JSON reads what the function gave.
func (r Returned) JSON(into any) error { return json.Unmarshal(r.Bytes, into) }

// File is one a test has added, or the plugin has stored.
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
	FileType string `json:"file_type"`
	Bytes    []byte `json:"bytes"`
}

// Notification is a message to a user, a chat, or students: To says to whom.
type Notification struct {
	To      json.RawMessage `json:"to"`
	Message Message         `json:"message"`
}

// Event is one the plugin has published.
type Event struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload"`
}

// Host has a plugin in the sandbox, and what it stores and sends.
type Host struct {
	t      testing.TB
	number int
}

// Start builds the plugin, once for all tests of a package, and puts it into a sandbox of its own.
func Start(t testing.TB, options Options) *Host {
	t.Helper()
	folder := options.Folder
	if folder == "" {
		folder = folderOf(t)
	}
	names := map[string][]string{}
	for plugin, functions := range options.Plugins {
		for name := range functions {
			names[plugin] = append(names[plugin], name)
		}
	}
	host := &Host{t, theProgram(t).hold(options)}
	host.ask("open", map[string]any{
		"folder": folder, "config": options.Config, "timeout_ms": options.Timeout.Milliseconds(),
		"answers_http": options.HTTP != nil, "plugins": names,
	}, nil)
	t.Cleanup(func() { theProgram(t).release(host.number) })
	return host
}

// folderOf finds the plugin that the test is in.
func folderOf(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "plugin-host.json")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			t.Fatalf("neither %s nor a folder above it has a plugin-host.json; set Options.Folder", folder)
		}
	}
}

// HTTP calls an HTTP trigger, past the access rules of the service: host.HTTP("GET /greet?name=Ada", plugintest.As{User: 7}).
func (h *Host) HTTP(request string, as ...As) (answer Answer) {
	h.t.Helper()
	h.ask("http", map[string]any{"request": request, "as": wire(as)}, &answer)
	return answer
}

// Message sends a command: host.Message("/menu tomorrow").
func (h *Host) Message(text string, as ...As) (replied Replied) {
	h.t.Helper()
	h.ask("message", map[string]any{"text": text, "as": wire(as)}, &replied)
	return replied
}

// Call calls a function as another plugin would.
func (h *Host) Call(name string, value any, as ...As) (returned Returned) {
	h.t.Helper()
	h.ask("call", map[string]any{"name": name, "value": value, "as": wire(as)}, &returned)
	return returned
}

// AddFile adds a file the plugin may read, and gives its id.
func (h *Host) AddFile(file File) (id string) {
	h.t.Helper()
	h.ask("add_file", map[string]any{"file": file}, &id)
	return id
}

// KV gives the value of a key, and whether it is there.
func (h *Host) KV(key string) (value string, found bool) {
	h.t.Helper()
	var text *string
	h.ask("kv", map[string]any{"key": key}, &text)
	if text == nil {
		return "", false
	}
	return *text, true
}

// Files gives all files: those of the test, and those the plugin has stored.
func (h *Host) Files() (files []File) { h.t.Helper(); h.ask("files", nil, &files); return files }

// Requests gives what the plugin has sent to other hosts.
func (h *Host) Requests() (requests []Request) {
	h.t.Helper()
	h.ask("requests", nil, &requests)
	return requests
}

// Notifications gives the messages to others that the plugin has sent.
func (h *Host) Notifications() (sent []Notification) {
	h.t.Helper()
	h.ask("notifications", nil, &sent)
	return sent
}

// Events gives what the plugin has published.
func (h *Host) Events() (events []Event) { h.t.Helper(); h.ask("events", nil, &events); return events }

// wire writes the options of a call as plugin-host reads them; what is not set is left out.
func wire(as []As) map[string]any {
	given := map[string]any{}
	for _, a := range as {
		set := func(name string, value any, isSet bool) {
			if isSet {
				given[name] = value
			}
		}
		set("user", a.User, a.User != 0)
		set("service_key", a.ServiceKey, a.ServiceKey != 0)
		set("headers", a.Headers, a.Headers != nil)
		set("kv", a.KV, a.KV != nil)
		set("grant", a.Grant, a.Grant != nil)
		set("access", a.Access, a.Access != nil)
		set("files", a.Files, a.Files != nil)
		set("from", a.From, a.From != "")
		switch body := a.Body.(type) {
		case nil:
		case string:
			given["body_bytes"] = []byte(body)
		case []byte:
			given["body_bytes"] = body
		default:
			given["body"] = body
		}
	}
	return given
}
