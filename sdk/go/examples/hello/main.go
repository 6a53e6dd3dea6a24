// Two triggers of one handler, without any permission: it answers with what the request brought along.
package main

import (
	"cmp"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:      "hello",
		Name:    "Hello",
		Version: "1.0.0",
		Triggers: []pluginhost.Trigger{
			{
				Name:        "greet",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/greet",
				Methods:     []string{"GET", "POST"},
				Description: "Greets and echoes what the request brought along",
				Access:      pluginhost.Public("It shows nothing but what the caller sent"),
				Handler:     greet,
			},
			{
				Name:        "greet_name",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/greet/:name",
				Methods:     []string{"GET"},
				Description: "Greets the name in the path",
				Access:      pluginhost.Public("It shows nothing but what the caller sent"),
				Handler:     greet,
			},
		},
	})
}

type greeting struct {
	Message   string                   `json:"message"`
	Method    string                   `json:"method"`
	Path      string                   `json:"path"`
	Query     map[string]string        `json:"query"`
	Body      string                   `json:"body"`
	Principal *pluginhost.HTTPAuthInfo `json:"principal"`
}

func greet(ctx *pluginhost.Context) error {
	r := ctx.HTTP
	body := ""
	if r.Method == "POST" {
		body = r.Body()
	}
	return ctx.JSON(200, greeting{
		Message:   "Hello, " + cmp.Or(r.Params["name"], r.Query["name"], "world") + "!",
		Method:    r.Method,
		Path:      r.Path,
		Query:     r.Query,
		Body:      body,
		Principal: r.Auth,
	})
}

func main() {}
