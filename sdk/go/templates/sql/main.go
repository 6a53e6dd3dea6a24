package main

import (
	"errors"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:           "template-plugin",
		Name:         "Template Plugin",
		Version:      "0.1.0",
		Requirements: []*pluginhost.Requirement{pluginhost.Database("Reads and keeps notes").Name("notes").Build()},
		Triggers: []pluginhost.Trigger{{
			Name:        "notes",
			Type:        pluginhost.TriggerHTTP,
			Path:        "/notes",
			Methods:     []string{"GET", "POST"},
			Description: "Notes of the user",
			Access:      pluginhost.Users("Each user has notes"),
			Handler:     notes,
		}},
	})
}

func notes(ctx *pluginhost.Context) error {
	auth := ctx.HTTP.Auth
	if auth == nil || auth.Kind != "user" {
		return ctx.JSON(401, map[string]string{"error": "log in first"})
	}
	db, err := ctx.Database("notes")
	if err != nil {
		return err
	}
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS notes (user_id bigint NOT NULL, text text NOT NULL)")
	if err == nil && ctx.HTTP.Method == "POST" {
		_, err = db.Exec("INSERT INTO notes VALUES ($1, $2)", auth.UserID, ctx.HTTP.Body())
	}
	if err != nil {
		return err
	}
	rows, err := db.Query("SELECT text FROM notes WHERE user_id = $1", auth.UserID)
	if err != nil {
		return err
	}
	type note struct {
		Text string `json:"text"`
	}
	all := []note{}
	for rows.Next() {
		var n note
		if err := rows.Scan(&n.Text); err != nil {
			return errors.Join(err, rows.Err())
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return ctx.JSON(200, map[string]any{"notes": all})
}

func main() {}
