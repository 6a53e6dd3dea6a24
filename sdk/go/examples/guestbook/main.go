// Entries in the key-value store, listed page by page; a title and a secret key from the configuration.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:      "guestbook",
		Name:    "Guestbook",
		Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.KV("Keeps the entries of the guestbook").
				WithConfig(pluginhost.ConfigFields(
					pluginhost.String("title", "Title shown above the entries"),
					pluginhost.String("moderator_key", "Key that allows to remove an entry").Required().Sensitive(),
				)).
				Build(),
		},
		Triggers: []pluginhost.Trigger{
			{
				Name:        "entries",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/entries",
				Methods:     []string{"GET", "POST"},
				Description: "Lists the entries or adds one",
				Access:      pluginhost.Public("Visitors read the guestbook and sign it without a login"),
				Handler:     entries,
			},
			{
				Name:        "entry",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/entries/:id",
				Methods:     []string{"GET", "DELETE"},
				Description: "Shows or removes one entry",
				Access:      pluginhost.Public("Visitors read an entry without a login; removing one needs the moderator's key"),
				Handler:     entry,
			},
		},
	})
}

const (
	prefix = "entry:"
	page   = 50
)

// Entry is what the store holds as JSON.
type Entry struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Text string `json:"text"`
}

func refuse(ctx *pluginhost.Context, status int, text string) error {
	return ctx.JSON(status, map[string]string{"error": text})
}

func entries(ctx *pluginhost.Context) error {
	if ctx.HTTP.Method == "POST" {
		return add(ctx)
	}
	after := ctx.HTTP.Query["after"]
	if after != "" {
		after = prefix + after
	}
	keys, err := ctx.KVList(prefix, after, page)
	if err != nil {
		return err
	}
	found := []json.RawMessage{}
	for _, key := range keys.Keys {
		value, err := ctx.KVGetBytes(key)
		if errors.Is(err, pluginhost.ErrNotFound) {
			continue // it was removed between the two calls
		}
		if err != nil {
			return err
		}
		found = append(found, value)
	}
	answer := map[string]any{
		"title":   cmp.Or(ctx.Config("title"), "Guestbook"),
		"entries": found,
		"next":    nil,
	}
	if keys.Next != "" {
		answer["next"] = strings.TrimPrefix(keys.Next, prefix)
	}
	return ctx.JSON(200, answer)
}

func add(ctx *pluginhost.Context) error {
	var sent Entry
	if err := ctx.HTTP.JSON(&sent); err != nil || sent.Name == "" || sent.Text == "" {
		return refuse(ctx, 400, `send {"name": ..., "text": ...}`)
	}
	sent.ID = ctx.RequestID
	value, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	if err := ctx.KVSetBytes(prefix+sent.ID, value, 0); err != nil {
		return err
	}
	ctx.Log("entry " + sent.ID + " by " + sent.Name)
	return ctx.JSON(201, sent)
}

func entry(ctx *pluginhost.Context) error {
	key := prefix + ctx.HTTP.Params["id"]
	if ctx.HTTP.Method == "DELETE" {
		return remove(ctx, key)
	}
	value, err := ctx.KVGetBytes(key)
	if errors.Is(err, pluginhost.ErrNotFound) {
		return refuse(ctx, 404, "there is no such entry")
	}
	if err != nil {
		return err
	}
	return ctx.JSON(200, json.RawMessage(value))
}

func remove(ctx *pluginhost.Context, key string) error {
	if ctx.HTTP.Headers["x-moderator-key"] != ctx.Config("moderator_key") {
		return refuse(ctx, 403, "the moderator key is needed")
	}
	removed, err := ctx.KVDelete(key)
	if err != nil {
		return err
	}
	if !removed {
		return refuse(ctx, 404, "there is no such entry")
	}
	return ctx.SetHTTPResponse(204, map[string]string{}, "")
}

func main() {}
