// Package pluginhost is the kit for plugins in Go.
//
//	func init() {
//		pluginhost.Register(pluginhost.Plugin{
//			ID: "hello", Name: "Hello", Version: "1.0.0",
//			Triggers: []pluginhost.Trigger{{
//				Name: "greet", Type: pluginhost.TriggerHTTP, Path: "/greet", Methods: []string{"GET"}, Handler: greet,
//			}},
//		})
//	}
//
//	func main() {}
package pluginhost

import "encoding/json"

// ConfigField is a field of the configuration, which the administrator fills in at the installation.
type ConfigField struct {
	FieldType   string `json:"type"`
	FieldName   string `json:"name"`
	Description string `json:"description"`
	IsRequired  bool   `json:"required"`
	IsSensitive bool   `json:"sensitive"`
}

// String makes a text field, which a handler reads with ctx.Config(name).
func String(name, description string) *ConfigField {
	return &ConfigField{FieldType: "string", FieldName: name, Description: description}
}

// Required: the plugin cannot be installed without it.
func (f *ConfigField) Required() *ConfigField { f.IsRequired = true; return f }

// Sensitive: a secret, stored encrypted and never shown again.
func (f *ConfigField) Sensitive() *ConfigField { f.IsSensitive = true; return f }

// ConfigFields lists the fields of WithConfig.
func ConfigFields(fields ...*ConfigField) []*ConfigField { return fields }

// Requirement is something a plugin asks its host for; made by KV, Database and their like.
type Requirement struct {
	Kind        string         `json:"kind"`
	Description string         `json:"description"`
	LogicalName string         `json:"name,omitempty"`
	Target      string         `json:"target,omitempty"`
	Config      []*ConfigField `json:"config,omitempty"`
}

// Name sets the logical name of a database; "default" without it.
func (r *Requirement) Name(name string) *Requirement { r.LogicalName = name; return r }

// WithConfig adds fields the administrator fills in.
func (r *Requirement) WithConfig(fields []*ConfigField) *Requirement { r.Config = fields; return r }

// Build finishes the requirement.
func (r *Requirement) Build() *Requirement { return r }

// Database asks for a PostgreSQL database: ctx.Database.
func Database(description string) *Requirement {
	return &Requirement{Kind: "sql", Description: description, LogicalName: "default"}
}

// KV asks for the key-value store: ctx.KVGet and its like.
func KV(description string) *Requirement { return &Requirement{Kind: "kv", Description: description} }

// HTTP asks for requests to other hosts: ctx.HTTPGet, ctx.HTTPPost, ctx.HTTPRequest.
func HTTP(description string) *Requirement {
	return &Requirement{Kind: "network", Description: description}
}

// NotifyReq asks for messages to users, chats and students: ctx.NotifyUser and its like.
func NotifyReq(description string) *Requirement {
	return &Requirement{Kind: "notify", Description: description}
}

// EventsReq asks for events: ctx.PublishEvent.
func EventsReq(description string) *Requirement {
	return &Requirement{Kind: "events", Description: description}
}

// PluginDep asks for calls of another plugin: ctx.CallPlugin.
func PluginDep(target, description string) *Requirement {
	return &Requirement{Kind: "plugins:call", Description: description, Target: target}
}

// File asks for files: ctx.FileMeta, ctx.FileRead, ctx.FileStore and their like.
func File(description string) *Requirement {
	return &Requirement{Kind: "file", Description: description}
}

// Access is who should call an HTTP trigger, as its author sees it. It counts when the administrator accepts it.
type Access struct {
	Public      bool   `json:"public"`
	Users       bool   `json:"users"`
	ServiceKeys bool   `json:"service_keys"`
	Policy      string `json:"policy"`
	Reason      string `json:"reason"`
}

// WithPolicy adds a CEL expression that must be true as well; not for a public trigger.
func (a *Access) WithPolicy(expression string) *Access { a.Policy = expression; return a }

// Public suggests that callers need no login. The reason is shown to the administrator.
func Public(reason string) *Access { return &Access{Public: true, Reason: reason} }

// Users suggests that users may call.
func Users(reason string) *Access { return &Access{Users: true, Reason: reason} }

// ServiceKeys suggests that programs with a service key may call.
func ServiceKeys(reason string) *Access { return &Access{ServiceKeys: true, Reason: reason} }

// UsersAndServiceKeys suggests that users and programs with a service key may call.
func UsersAndServiceKeys(reason string) *Access {
	return &Access{Users: true, ServiceKeys: true, Reason: reason}
}

// Types of triggers.
const (
	TriggerHTTP      = "TriggerHTTP"
	TriggerMessenger = "TriggerMessenger"
)

// Handler handles one event. An error it returns ends the execution as failed.
type Handler func(ctx *Context) error

// Trigger is an endpoint below /api/triggers/http/<plugin id>, or a command of messengers.
type Trigger struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Path        string   `json:"path"`
	Methods     []string `json:"methods,omitempty"`
	Access      *Access  `json:"access,omitempty"`
	Handler     Handler  `json:"-"`
}

// MarshalJSON leaves out the path of a command. What else a command has no use for stays: the host warns of it.
func (t Trigger) MarshalJSON() ([]byte, error) {
	type plain Trigger
	if t.Type != TriggerMessenger {
		return json.Marshal(plain(t))
	}
	return json.Marshal(struct {
		plain
		Path string `json:"path,omitempty"`
	}{plain(t), t.Path})
}

// Plugin is what a plugin declares about itself.
type Plugin struct {
	ABI          int            `json:"abi"`
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	Requirements []*Requirement `json:"requirements"`
	Triggers     []Trigger      `json:"triggers"`
	// Functions other plugins may call which require this one (PluginDep), by name.
	Functions map[string]Handler `json:"-"`
	Start     string             `json:"start,omitempty"`
}

// protocol is the version of the functions this kit uses.
const protocol = 5

var registered *Plugin

// Register declares the plugin; called once, in an init function.
func Register(plugin Plugin) {
	if registered != nil {
		panic("pluginhost.Register is called twice; a plugin is registered once")
	}
	plugin.ABI = protocol
	plugin.Start = start
	if plugin.Requirements == nil {
		plugin.Requirements = []*Requirement{}
	}
	if plugin.Triggers == nil {
		plugin.Triggers = []Trigger{}
	}
	registered = &plugin
}
