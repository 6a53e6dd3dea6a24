// Does what a test asks for, one function of the kit at a time: the same plugin is written in every kit.
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"pluginhost"
)

type given []json.RawMessage

// str, num and raw read an argument; a missing one is empty.
func (g given) str(k int) (s string) { g.into(k, &s); return }
func (g given) num(k int) (n int64)  { g.into(k, &n); return }
func (g given) bin(k int) []byte     { b, _ := base64.StdEncoding.DecodeString(g.str(k)); return b }
func (g given) into(k int, v any) {
	if k < len(g) {
		_ = json.Unmarshal(g[k], v)
	}
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// absent turns "not found" into nothing.
func absent(value any, err error) (any, error) {
	if errors.Is(err, pluginhost.ErrNotFound) {
		return nil, nil
	}
	return value, err
}

func update(u pluginhost.KVUpdate, err error) (any, error) {
	if err != nil || u.Written {
		return map[string]any{"written": true}, err
	}
	return map[string]any{"written": false, "present": u.Present}, nil
}

func sum(b []byte) map[string]int {
	total := 0
	for k, c := range b {
		total = (total + int(c)*(k%251+1)) % 1_000_003
	}
	return map[string]int{"length": len(b), "sum": total}
}

func request(ctx *pluginhost.Context) map[string]any {
	r := ctx.HTTP
	answer := map[string]any{"method": r.Method, "path": r.Path, "query": r.Query, "query_all": r.QueryAll, "raw_query": r.RawQuery, "param": r.Params["case"], "address": r.RemoteAddr, "auth": nil}
	answer["header"] = nil
	if h, ok := r.Headers["x-test"]; ok {
		answer["header"] = h
	}
	if r.Auth != nil {
		answer["auth"] = map[string]any{"kind": r.Auth.Kind, "user_id": r.Auth.UserID, "service_key_id": r.Auth.ServiceKeyID}
	}
	return answer
}

func list(rows *pluginhost.Rows, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	all := []map[string]any{}
	for rows.Next() {
		row, err := rows.Row()
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// values reads the arguments of a statement from JSON.
func values(raw json.RawMessage) []any {
	var parsed []any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	_ = d.Decode(&parsed)
	for k, v := range parsed {
		if items, ok := v.([]any); ok {
			var numbers []int64
			for _, item := range items {
				n, _ := item.(json.Number).Int64()
				numbers = append(numbers, n)
			}
			parsed[k] = numbers
		}
	}
	return parsed
}

func sql(ctx *pluginhost.Context, name string, g given) (any, error) {
	logical := ""
	if name == "sql_other" {
		logical = g.str(0)
	}
	db, err := ctx.Database(logical)
	if err != nil {
		return nil, err
	}
	switch name {
	case "sql_query":
		return list(db.Query(g.str(0), values(g[1])...))
	case "sql_exec":
		return db.Exec(g.str(0), values(g[1])...)
	case "sql_integer":
		rows, err := db.Query("SELECT $1::int8 AS n", int64(9007199254740993))
		if err != nil {
			return nil, err
		}
		var n int64
		rows.Next()
		err = rows.Scan(&n)
		return n, err
	case "sql_bytes":
		rows, err := db.Query("SELECT $1::bytea AS b", []byte{0, 255})
		if err != nil {
			return nil, err
		}
		var b []byte
		rows.Next()
		if err := rows.Scan(&b); err != nil {
			return nil, err
		}
		return b64(b), nil
	case "sql_transaction":
		var commit bool
		g.into(0, &commit)
		tx, err := db.Begin()
		if err != nil {
			return nil, err
		}
		count, err := tx.Exec(g.str(1))
		if err != nil {
			return nil, err
		}
		if commit {
			return count, tx.Commit()
		}
		return count, tx.Rollback()
	}
	return db.Exec("SELECT 1")
}

func outside(ctx *pluginhost.Context, name string, g given) (any, error) {
	switch name {
	case "http_request":
		headers := map[string]string{}
		g.into(2, &headers)
		a, err := ctx.HTTPRequest(pluginhost.HTTPOrder{Method: g.str(0), URL: g.str(1), Headers: headers, Body: []byte(g.str(3))})
		if err != nil {
			return nil, err
		}
		return map[string]any{"status": a.Status, "header": a.Header("X-Answer"), "body": string(a.Body)}, nil
	case "http_get":
		a, err := ctx.HTTPGet(g.str(0))
		if err != nil {
			return nil, err
		}
		return string(a.Body), nil
	case "http_post":
		a, err := ctx.HTTPPost(g.str(0), g.str(1), []byte(g.str(2)))
		if err != nil {
			return nil, err
		}
		return string(a.Body), nil
	case "notify_user":
		id, _ := strconv.ParseInt(g.str(0), 10, 64)
		return nil, ctx.NotifyUser(id, pluginhost.NewMessage(g.str(1)))
	case "notify_chat":
		return nil, ctx.NotifyChat(g.str(0), pluginhost.NewMessage(g.str(1)))
	case "notify_students":
		var groups []string
		if string(g[0]) != "null" {
			groups = append(groups, g.str(0))
		}
		return ctx.NotifyStudents(pluginhost.Students().Groups(groups...), pluginhost.NewMessage(g.str(1)))
	case "publish":
		return nil, ctx.PublishEvent(g.str(0), g[1])
	case "call":
		return ctx.CallPlugin("target", g.str(0), g[1])
	case "call_raw":
		b, err := ctx.CallPluginRaw("target", g.str(0), g.bin(1))
		return b64(b), err
	}
	return nil, errLeftOut
}

func files(ctx *pluginhost.Context, name string, g given) (any, error) {
	switch name {
	case "file_store":
		return ctx.FileStore(g.str(0), g.str(1), g.str(2), g.bin(3))
	case "file_store_ttl":
		return ctx.FileStoreWithTTL(g.str(0), "text/plain", "document", []byte("short-lived"), time.Duration(g.num(1))*time.Millisecond)
	case "file_meta":
		return ctx.FileMeta(g.str(0))
	case "file_read":
		b, eof, err := ctx.FileRead(g.str(0), g.num(1), g.num(2))
		if err != nil {
			return nil, err
		}
		return map[string]any{"length": len(b), "first": b[0], "eof": eof}, nil
	case "file_read_all":
		b, err := ctx.FileReadAll(g.str(0))
		return sum(b), err
	}
	url, err := ctx.FileURL(g.str(0))
	return url != "", err
}

func keyValues(ctx *pluginhost.Context, name string, g given) (any, error) {
	key := g.str(0)
	switch name {
	case "kv_get":
		return absent(ctx.KVGet(key))
	case "kv_get_bytes":
		b, err := ctx.KVGetBytes(key)
		return absent(b64(b), err)
	case "kv_get_many", "kv_get_many_bytes":
		var keys []string
		g.into(0, &keys)
		found, err := ctx.KVGetMany(keys)
		all := make([]any, len(keys))
		for k, key := range keys {
			v, ok := found[key]
			if ok && name == "kv_get_many_bytes" {
				all[k] = b64([]byte(v))
			} else if ok {
				all[k] = v
			}
		}
		return all, err
	case "kv_set":
		return nil, ctx.KVSet(key, g.str(1), time.Duration(g.num(2))*time.Second)
	case "kv_set_bytes":
		return nil, ctx.KVSetBytes(key, g.bin(1), 0)
	case "kv_set_if_absent":
		return update(ctx.KVSetIfAbsent(key, g.str(1), 0))
	case "kv_compare_and_set":
		return update(ctx.KVCompareAndSet(key, g.str(1), g.str(2), 0))
	case "kv_increment":
		delta, _ := strconv.ParseInt(g.str(1), 10, 64)
		return ctx.KVIncrement(key, delta, 0)
	case "kv_delete":
		return ctx.KVDelete(key)
	case "kv_list":
		page, err := ctx.KVList(key, g.str(1), int(g.num(2)))
		answer := map[string]any{"keys": page.Keys, "next": nil}
		if page.Next != "" {
			answer["next"] = page.Next
		}
		return answer, err
	}
	return nil, errLeftOut
}

var errLeftOut = errors.New("left out")

func try(ctx *pluginhost.Context, name string, g given) (any, error) {
	switch {
	case strings.HasPrefix(name, "kv_"):
		return keyValues(ctx, name, g)
	case strings.HasPrefix(name, "sql_"):
		return sql(ctx, name, g)
	case strings.HasPrefix(name, "file_"):
		return files(ctx, name, g)
	}
	switch name {
	case "request":
		return request(ctx), nil
	case "body_bytes":
		return len(ctx.HTTP.BodyBytes()), nil
	case "config":
		if value := ctx.Config(g.str(0)); value != "" {
			return value, nil
		}
		return nil, nil
	case "host_info":
		info, err := ctx.HostInfo()
		return info.ABI, err
	case "log":
		ctx.Log(g.str(0))
		ctx.LogError(g.str(0))
		return nil, nil
	case "large":
		return strings.Repeat("x", int(g.num(0))), nil
	case "random":
		return []any{rand.Uint64(), rand.Float64()}, nil
	case "clock":
		return time.Now().UnixMilli(), nil
	}
	return outside(ctx, name, g)
}

func run(ctx *pluginhost.Context) error {
	name := ctx.HTTP.Params["case"]
	var g given
	if name != "body_bytes" {
		_ = ctx.HTTP.JSON(&g)
	}
	switch name {
	case "throw":
		return fail(g.str(0))
	case "give_back":
		_, err := ctx.FileMeta(g.str(0))
		return err
	case "loop":
		for {
		}
	case "respond":
		headers := map[string]string{}
		g.into(1, &headers)
		return ctx.SetHTTPResponse(int(g.num(0)), headers, g.str(2))
	case "respond_bytes":
		return ctx.SetHTTPResponseBytes(200, map[string]string{}, g.bin(0))
	case "silent":
		return nil
	}
	value, err := try(ctx, name, g)
	var refused *pluginhost.HostError
	if errors.As(err, &refused) {
		return ctx.JSON(200, map[string]any{"code": refused.Code, "text": refused.Message})
	}
	if errors.Is(err, errLeftOut) {
		return ctx.JSON(404, map[string]string{"left_out": name})
	}
	if err != nil {
		return err
	}
	return ctx.JSON(200, map[string]any{"result": value})
}

func fail(reason string) error { panic(reason) }

func say(ctx *pluginhost.Context) error {
	m := ctx.Message
	files := []string{}
	for _, file := range ctx.Files() {
		content, err := ctx.FileReadAll(file.ID)
		if err != nil {
			return err
		}
		files = append(files, file.FileType+": "+string(content))
	}
	what, err := json.Marshal(map[string]any{"text": m.Text, "args": m.Args, "chat": m.ChatID, "user": m.UserID, "files": files})
	if err != nil {
		return err
	}
	if err := ctx.Reply(pluginhost.NewMessage(string(what))); err != nil || len(m.Args) == 0 {
		return err
	}
	file, err := ctx.FileStore(m.Args[0], "text/plain", "document", []byte("in it"))
	if err != nil {
		return err
	}
	return ctx.Reply(pluginhost.NewMessage("").File(file, "Here"))
}

func double(ctx *pluginhost.Context) error {
	var n int
	if err := ctx.Call.Value(&n); err != nil {
		return err
	}
	return ctx.Output(map[string]any{"doubled": n * 2, "from": ctx.Call.From})
}

func reverse(ctx *pluginhost.Context) error {
	b := ctx.Call.Bytes()
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return ctx.OutputBytes(b)
}

func refuse(*pluginhost.Context) error { return fmt.Errorf("refused by its author") }

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID: "conformance", Name: "Conformance", Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.KV("Cases").WithConfig(pluginhost.ConfigFields(pluginhost.String("title", "A title").Required(), pluginhost.String("none", "Empty"))).Build(),
			pluginhost.Database("Cases").Build(),
			pluginhost.HTTP("Cases").Build(),
			pluginhost.NotifyReq("Cases").Build(),
			pluginhost.EventsReq("Cases").Build(),
			pluginhost.PluginDep("target", "Cases").Build(),
			pluginhost.File("Cases").Build(),
		},
		Triggers: []pluginhost.Trigger{
			{Name: "run", Type: pluginhost.TriggerHTTP, Path: "/run/:case", Methods: []string{"GET", "POST"}, Handler: run},
			{Name: "say", Type: pluginhost.TriggerMessenger, Description: "Says what came", Handler: say},
		},
		Functions: map[string]pluginhost.Handler{"double": double, "reverse": reverse, "refuse": refuse},
	})
}

func main() {}
