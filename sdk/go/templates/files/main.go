package main

import (
	"bytes"
	"errors"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:           "template-plugin",
		Name:         "Template Plugin",
		Version:      "0.1.0",
		Requirements: []*pluginhost.Requirement{pluginhost.File("Reads the files that are handed in").Build()},
		Triggers: []pluginhost.Trigger{{
			Name:        "count",
			Type:        pluginhost.TriggerHTTP,
			Path:        "/lines",
			Methods:     []string{"POST"},
			Description: "Counts the lines of an uploaded file",
			Access:      pluginhost.Users("Users may have their files counted"),
			Handler:     count,
		}},
	})
}

// count gets {"file_id": "..."}, the id of a file that was uploaded through /api/files/.
func count(ctx *pluginhost.Context) error {
	var sent struct {
		FileID string `json:"file_id"`
	}
	if err := ctx.HTTP.JSON(&sent); err != nil {
		return ctx.JSON(400, map[string]string{"error": `send {"file_id": ...}`})
	}
	meta, err := ctx.FileMeta(sent.FileID)
	if errors.Is(err, pluginhost.ErrNotFound) {
		return ctx.JSON(404, map[string]string{"error": "there is no such file"})
	}
	if err != nil {
		return err
	}
	content, err := ctx.FileReadAll(sent.FileID)
	if err != nil {
		return err
	}
	lines := bytes.Count(content, []byte("\n")) + 1
	return ctx.JSON(200, map[string]any{"name": meta.Name, "lines": lines})
}

func main() {}
