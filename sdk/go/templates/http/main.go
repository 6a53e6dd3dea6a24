package main

import "pluginhost"

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:           "template-plugin",
		Name:         "Template Plugin",
		Version:      "0.1.0",
		Requirements: []*pluginhost.Requirement{pluginhost.KV("Counts who was greeted").Build()},
		Triggers: []pluginhost.Trigger{{
			Name:        "greet",
			Type:        pluginhost.TriggerHTTP,
			Path:        "/greet/:name",
			Methods:     []string{"GET"},
			Description: "Greets, and counts how often",
			Access:      pluginhost.Users("Users may be greeted"),
			Handler:     greet,
		}},
	})
}

func greet(ctx *pluginhost.Context) error {
	name := ctx.HTTP.Params["name"]
	times, err := ctx.KVIncrement("greeted:"+name, 1, 0)
	if err != nil {
		return err
	}
	return ctx.JSON(200, map[string]any{"message": "Hello, " + name + "!", "times": times})
}

func main() {}
