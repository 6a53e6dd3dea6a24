// A box of files for each user, with a page in a browser: uploads, links, notes, and files read in parts.
package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:      "filebox",
		Name:    "Filebox",
		Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.File("Keeps the files users upload, and stores notes of its own").Build(),
			pluginhost.KV("Remembers whose box holds which file").Build(),
		},
		Triggers: []pluginhost.Trigger{
			{
				Name:        "files",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/files",
				Methods:     []string{"GET", "POST"},
				Description: "Lists the box, or puts uploaded files into it",
				Handler:     inBox(files),
			},
			{
				Name:        "file",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/files/:id",
				Methods:     []string{"GET", "DELETE"},
				Description: "Gives the content of a file, or takes it out of the box",
				Handler:     inBox(file),
			},
			{
				Name:        "link",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/files/:id/link",
				Methods:     []string{"GET"},
				Description: "Gives an address the file can be read at for some minutes",
				Handler:     inBox(link),
			},
			{
				Name:        "checksum",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/files/:id/checksum",
				Methods:     []string{"GET"},
				Description: "Reads a file of any size in chunks, a part of it with each call",
				Handler:     inBox(checksum),
			},
			{
				Name:        "notes",
				Type:        pluginhost.TriggerHTTP,
				Path:        "/notes",
				Methods:     []string{"POST"},
				Description: "Stores a text as a file",
				Handler:     inBox(notes),
			},
		},
	})
}

// window is what one execution reads at most; it stays below the host's 64 MB.
const window = 48 << 20

// refusal stops a request with a status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// inBox lets users in alone, and gives the handler what the keys of the user's box begin with.
func inBox(handle func(ctx *pluginhost.Context, box string) error) pluginhost.Handler {
	return func(ctx *pluginhost.Context) error {
		var err error = &refusal{401, "log in to have a box"}
		if auth := ctx.HTTP.Auth; auth != nil && auth.Kind == "user" {
			err = handle(ctx, fmt.Sprintf("box:%d:", auth.UserID))
		}
		var refused *refusal
		var host *pluginhost.HostError
		switch {
		case errors.As(err, &refused):
			return ctx.JSON(refused.status, map[string]string{"error": refused.text})
		case errors.Is(err, pluginhost.ErrNotFound):
			return ctx.JSON(404, map[string]string{"error": err.Error()})
		case errors.As(err, &host):
			return ctx.JSON(502, map[string]string{"error": err.Error()})
		}
		return err
	}
}

// held gives the id in the path, of a file in the box. The host lets no user read what another one has uploaded, but
// notes are the plugin's own files, and whose they are is known here alone.
func held(ctx *pluginhost.Context, box string) (string, error) {
	id := ctx.HTTP.Params["id"]
	_, err := ctx.KVGet(box + id)
	if errors.Is(err, pluginhost.ErrNotFound) {
		err = &refusal{404, "not found"}
	}
	return id, err
}

func files(ctx *pluginhost.Context, box string) error {
	if ctx.HTTP.Method == "POST" {
		return add(ctx, box)
	}
	page, err := ctx.KVList(box, "", 200)
	if err != nil {
		return err
	}
	list := []pluginhost.FileRef{}
	for _, key := range page.Keys {
		ref, err := ctx.FileMeta(strings.TrimPrefix(key, box))
		if errors.Is(err, pluginhost.ErrNotFound) {
			// It was deleted, or its time has passed.
			_, err = ctx.KVDelete(key)
		} else if err == nil {
			list = append(list, ref)
		}
		if err != nil {
			return err
		}
	}
	return ctx.JSON(200, map[string]any{"files": list})
}

func add(ctx *pluginhost.Context, box string) error {
	var sent struct {
		FileID  string   `json:"file_id"`
		FileIDs []string `json:"file_ids"`
	}
	err := ctx.HTTP.JSON(&sent)
	if sent.FileID != "" {
		sent.FileIDs = append(sent.FileIDs, sent.FileID)
	}
	if err != nil || len(sent.FileIDs) == 0 {
		return &refusal{400, `send {"file_id": ...} or {"file_ids": [...]} of completed uploads`}
	}
	var added []pluginhost.FileRef
	for _, id := range sent.FileIDs {
		ref, err := ctx.FileMeta(id)
		if errors.Is(err, pluginhost.ErrNotFound) {
			return &refusal{404, "file " + id + ": not found"}
		}
		if err != nil {
			return err
		}
		added = append(added, ref)
	}
	for _, ref := range added {
		if err := ctx.KVSet(box+ref.ID, "", 0); err != nil {
			return err
		}
	}
	return ctx.JSON(201, map[string]any{"files": added})
}

func file(ctx *pluginhost.Context, box string) error {
	if ctx.HTTP.Method == "DELETE" {
		return remove(ctx, box)
	}
	id, err := held(ctx, box)
	if err != nil {
		return err
	}
	content, err := ctx.FileReadAll(id)
	if err != nil {
		return err
	}
	headers := map[string]string{"Content-Type": "application/octet-stream"}
	if err := ctx.SetHTTPResponseBytes(200, headers, content); err != nil {
		return &refusal{413, "the file is too large to be answered whole; use its link"}
	}
	return nil
}

func remove(ctx *pluginhost.Context, box string) error {
	removed, err := ctx.KVDelete(box + ctx.HTTP.Params["id"])
	if err != nil {
		return err
	}
	if !removed {
		return &refusal{404, "not found"}
	}
	return ctx.SetHTTPResponse(204, map[string]string{}, "")
}

func link(ctx *pluginhost.Context, box string) error {
	id, err := held(ctx, box)
	if err != nil {
		return err
	}
	url, err := ctx.FileURL(id)
	if err != nil {
		return err
	}
	return ctx.JSON(200, map[string]string{"url": url})
}

// checksum is carried on from call to call with ?offset and ?state.
func checksum(ctx *pluginhost.Context, box string) error {
	id, err := held(ctx, box)
	if err != nil {
		return err
	}
	query := ctx.HTTP.Query
	var offset int64
	if from := query["offset"]; from != "" {
		if offset, err = strconv.ParseInt(from, 10, 64); err != nil || offset < 0 {
			return &refusal{400, fmt.Sprintf("the offset %q is no number", from)}
		}
	}
	state := uint64(fnvStart)
	if given, err := strconv.ParseUint(query["state"], 10, 64); err == nil {
		state = given
	}
	eof := false
	for end := offset + window; offset < end && !eof; {
		var chunk []byte
		if chunk, eof, err = ctx.FileRead(id, offset, 0); err != nil {
			return err
		}
		state = fnv(state, chunk)
		offset += int64(len(chunk))
	}
	return ctx.JSON(200, map[string]any{"offset": offset, "state": strconv.FormatUint(state, 10), "eof": eof})
}

func notes(ctx *pluginhost.Context, box string) error {
	var sent struct {
		Name string
		Text string
		TTL  int64 `json:"ttl_ms"`
	}
	// What is no JSON is a note without a name, which the host refuses.
	_ = ctx.HTTP.JSON(&sent)
	lasts := time.Duration(sent.TTL) * time.Millisecond
	ref, err := ctx.FileStoreWithTTL(sent.Name, "text/plain; charset=utf-8", "document", []byte(sent.Text), lasts)
	if err != nil {
		return &refusal{422, err.Error()}
	}
	if err := ctx.KVSet(box+ref.ID, "", 0); err != nil {
		return err
	}
	return ctx.JSON(201, ref)
}

func main() {}
