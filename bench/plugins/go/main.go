// The greeter of the benchmark in Go: JSON in, JSON out.
package main

import (
	"errors"
	"math/rand/v2"
	"strconv"

	"pluginhost"
)

type answer struct {
	Message string   `json:"message"`
	Visits  int      `json:"visits,omitempty"`
	Numbers []uint64 `json:"numbers,omitempty"`
}

func init() {
	trigger := func(name string, handler pluginhost.Handler) pluginhost.Trigger {
		return pluginhost.Trigger{
			Name: name, Type: pluginhost.TriggerHTTP, Path: "/" + name, Methods: []string{"GET"}, Handler: handler,
		}
	}
	pluginhost.Register(pluginhost.Plugin{
		ID: "greeter-go", Name: "Greeter (Go)", Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{pluginhost.KV("Counts visits").Build()},
		Triggers:     []pluginhost.Trigger{trigger("greet", greet), trigger("visit", visit), trigger("draw", draw)},
	})
}

func nameOf(ctx *pluginhost.Context) string {
	if name := ctx.HTTP.Query["name"]; name != "" {
		return name
	}
	return "world"
}

func greet(ctx *pluginhost.Context) error {
	return ctx.JSON(200, answer{Message: "Hello, " + nameOf(ctx) + "!"})
}

func visit(ctx *pluginhost.Context) error {
	key := "visits:" + nameOf(ctx)
	before, err := ctx.KVGet(key)
	if err != nil && !errors.Is(err, pluginhost.ErrNotFound) {
		return err
	}
	visits, _ := strconv.Atoi(before)
	visits++
	if err := ctx.KVSet(key, strconv.Itoa(visits), 0); err != nil {
		return err
	}
	return ctx.JSON(200, answer{Message: "Hello, " + nameOf(ctx) + "!", Visits: visits})
}

func draw(ctx *pluginhost.Context) error {
	numbers := []uint64{rand.Uint64() >> 11, rand.Uint64() >> 11}
	return ctx.JSON(200, answer{Message: "Hello, " + nameOf(ctx) + "!", Numbers: numbers})
}

func main() {}
