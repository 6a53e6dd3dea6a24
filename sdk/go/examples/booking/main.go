// Slots that only one person may have each, however many ask at once: conditional writes and a counter.
package main

import (
	"fmt"
	"strconv"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:           "booking",
		Name:         "Consultation hours",
		Version:      "1.0.0",
		Requirements: []*pluginhost.Requirement{pluginhost.KV("Keeps who has booked which slot").Build()},
		Triggers: []pluginhost.Trigger{
			{
				Name:        "slots",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/slots",
				Methods:     []string{"GET"},
				Description: "Lists the slots and who has booked them",
				Handler:     list,
			},
			{
				Name:        "slot",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/slots/:number",
				Methods:     []string{"POST", "DELETE"},
				Description: "Books a slot, or gives it up",
				Handler:     change,
			},
		},
	})
}

const (
	slots  = 40
	booked = "bookings"
	// free is the value of a slot that was given up; no user has this name.
	free = ""
)

// Slot is a slot as callers see it: BookedBy is nil when it is free.
type Slot struct {
	Number   int     `json:"slot"`
	BookedBy *string `json:"booked_by"`
}

func keyOf(slot int) string { return "slot:" + strconv.Itoa(slot) }

func refuse(ctx *pluginhost.Context, status int, text string) error {
	return ctx.JSON(status, map[string]string{"error": text})
}

// list gives all slots with two calls of the host, however many there are.
func list(ctx *pluginhost.Context) error {
	keys := make([]string, slots)
	for k := range keys {
		keys[k] = keyOf(k + 1)
	}
	names, err := ctx.KVGetMany(keys)
	if err != nil {
		return err
	}
	all := make([]Slot, slots)
	for k, key := range keys {
		all[k].Number = k + 1
		if name := names[key]; name != free {
			all[k].BookedBy = &name
		}
	}
	total, err := ctx.KVIncrement(booked, 0, 0)
	if err != nil {
		return err
	}
	return ctx.JSON(200, map[string]any{"booked": total, "slots": all})
}

func change(ctx *pluginhost.Context) error {
	number := ctx.HTTP.Params["number"]
	slot, err := strconv.Atoi(number)
	if err != nil || slot < 1 || slot > slots || strconv.Itoa(slot) != number {
		return refuse(ctx, 404, fmt.Sprintf("there are slots 1 to %d", slots))
	}
	var sent struct{ Name string }
	if err := ctx.HTTP.JSON(&sent); err != nil || sent.Name == "" {
		return refuse(ctx, 400, `send {"name": ...}`)
	}
	if ctx.HTTP.Method == "DELETE" {
		return release(ctx, slot, sent.Name)
	}
	return book(ctx, slot, sent.Name)
}

// book lets one person have the slot. Reading it and then writing it would let two people in between: each of these
// calls is one step.
func book(ctx *pluginhost.Context, slot int, name string) error {
	claim, err := ctx.KVSetIfAbsent(keyOf(slot), name, 0)
	if err == nil && claim.Present != nil && *claim.Present == free {
		claim, err = ctx.KVCompareAndSet(keyOf(slot), free, name, 0)
	}
	if err != nil {
		return err
	}
	if !claim.Written {
		return refuse(ctx, 409, fmt.Sprintf("slot %d is booked", slot))
	}
	count(ctx, 1)
	return ctx.JSON(201, Slot{slot, &name})
}

// release gives the slot up for the person who has booked it alone, whatever happens at the same time.
func release(ctx *pluginhost.Context, slot int, name string) error {
	given, err := ctx.KVCompareAndSet(keyOf(slot), name, free, 0)
	if err != nil {
		return err
	}
	if !given.Written {
		return refuse(ctx, 409, fmt.Sprintf("slot %d is not booked by you", slot))
	}
	count(ctx, -1)
	return ctx.JSON(200, Slot{Number: slot})
}

// count changes how many slots are booked. A booking stands even if it could not be counted.
func count(ctx *pluginhost.Context, change int64) {
	if _, err := ctx.KVIncrement(booked, change, 0); err != nil {
		ctx.LogError("counting bookings: " + err.Error())
	}
}

func main() {}
