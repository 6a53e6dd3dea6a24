// One handler for each recipe of docs/authors.md. It expects
// CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course));
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"pluginhost"
)

// object is JSON to answer with.
type object map[string]any

func init() {
	web := func(name, path string, handler pluginhost.Handler, methods ...string) pluginhost.Trigger {
		return pluginhost.Trigger{Name: name, Type: pluginhost.TriggerHTTP, Path: path, Methods: methods, Handler: handler}
	}
	greeting := web("greet", "/greet/:name", greet, "GET")
	greeting.Access = pluginhost.Public("It shows what the caller sent")
	caller := web("me", "/me", me, "GET")
	caller.Access = pluginhost.UsersAndServiceKeys("Each caller sees who it is")
	reminder := web("remind", "/reminders", remind, "POST")
	reminder.Access = pluginhost.ServiceKeys("The library reminds its readers")
	announcement := web("announce", "/announcements", announce, "POST")
	announcement.Access = pluginhost.Users("Deans write to groups").WithPolicy(`has_role("dean")`)
	pluginhost.Register(pluginhost.Plugin{
		ID:      "recipes",
		Name:    "Recipes",
		Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.KV("Remembers notes, seats and visits").Build(),
			pluginhost.Database("Reads and writes grades").Name("grades").Build(),
			pluginhost.HTTP("Asks the weather service").
				WithConfig(pluginhost.ConfigFields(
					pluginhost.String("service", "Address of the weather service").Required(),
					pluginhost.String("key", "Key of the weather service").Required().Sensitive(),
				)).
				Build(),
			pluginhost.File("Reads what users upload, and stores reports").Build(),
			pluginhost.NotifyReq("Reminds users and writes to study groups").Build(),
			pluginhost.EventsReq("Says when a book was returned").Build(),
			pluginhost.PluginDep("weather", "Asks for the temperature").Build(),
		},
		Functions: map[string]pluginhost.Handler{"free": free},
		Triggers: []pluginhost.Trigger{
			greeting,
			web("order", "/orders", order, "POST"),
			web("table", "/table", table, "GET"),
			caller,
			web("note", "/notes/:name", note, "GET", "PUT"),
			web("visit", "/visits", visit, "POST"),
			web("claim", "/seats/:seat", claim, "POST"),
			web("pass", "/seats/:seat/pass", pass, "POST"),
			web("seats", "/seats", seats, "GET"),
			web("grades", "/grades/:student", grades, "GET"),
			web("enter", "/grades", enter, "POST"),
			web("weather", "/weather/:place", weather, "GET"),
			web("lines", "/lines", lines, "POST"),
			web("report", "/reports", report, "POST"),
			{Name: "dishes", Type: pluginhost.TriggerMessenger, Description: "The dishes of a day", Handler: dishes},
			reminder,
			announcement,
			web("returned", "/returned/:book", returned, "POST"),
			web("outside", "/outside/:place", outside, "GET"),
		},
	})
}

func greet(ctx *pluginhost.Context) error {
	word, given := ctx.HTTP.Query["word"]
	if !given {
		word = "Hello"
	}
	return ctx.JSON(200, object{"message": word + ", " + ctx.HTTP.Params["name"] + "!"})
}

func order(ctx *pluginhost.Context) error {
	var sent struct{ Dish string }
	if err := ctx.HTTP.JSON(&sent); err != nil {
		return err
	}
	if sent.Dish == "" {
		return ctx.JSON(400, object{"error": `send {"dish": ...}`})
	}
	return ctx.JSON(201, object{"dish": sent.Dish})
}

func table(ctx *pluginhost.Context) error {
	headers := map[string]string{"Content-Type": "text/csv", "Content-Disposition": `attachment; filename="seats.csv"`}
	return ctx.SetHTTPResponse(200, headers, "seat,name\n1,Ada\n")
}

func me(ctx *pluginhost.Context) error {
	auth := ctx.HTTP.Auth
	if auth == nil {
		return ctx.JSON(401, object{"error": "log in first"})
	}
	return ctx.JSON(200, object{"kind": auth.Kind, "id": max(auth.UserID, auth.ServiceKeyID)})
}

func note(ctx *pluginhost.Context) error {
	key := "note:" + ctx.HTTP.Params["name"]
	if ctx.HTTP.Method == "PUT" {
		if err := ctx.KVSet(key, ctx.HTTP.Body(), time.Hour); err != nil {
			return err
		}
	}
	text, err := ctx.KVGet(key)
	if errors.Is(err, pluginhost.ErrNotFound) {
		return ctx.JSON(404, object{"error": "there is no such note"})
	}
	if err != nil {
		return err
	}
	return ctx.JSON(200, object{"text": text})
}

func visit(ctx *pluginhost.Context) error {
	visits, err := ctx.KVIncrement("visits", 1, 0)
	if err != nil {
		return err
	}
	return ctx.JSON(200, object{"visits": visits})
}

func claim(ctx *pluginhost.Context) error {
	name := ctx.HTTP.Query["name"]
	claimed, err := ctx.KVSetIfAbsent("seat:"+ctx.HTTP.Params["seat"], name, 0)
	if err != nil {
		return err
	}
	if !claimed.Written {
		return ctx.JSON(409, object{"error": *claimed.Present + " has this seat"})
	}
	return ctx.JSON(201, object{"name": name})
}

func pass(ctx *pluginhost.Context) error {
	from, to := ctx.HTTP.Query["from"], ctx.HTTP.Query["to"]
	passed, err := ctx.KVCompareAndSet("seat:"+ctx.HTTP.Params["seat"], from, to, 0)
	if err != nil {
		return err
	}
	if !passed.Written {
		return ctx.JSON(409, object{"error": from + " does not have this seat"})
	}
	return ctx.JSON(200, object{"name": to})
}

func seats(ctx *pluginhost.Context) error {
	page, err := ctx.KVList("seat:", ctx.HTTP.Query["after"], 50)
	if err != nil {
		return err
	}
	names, err := ctx.KVGetMany(page.Keys)
	if err != nil {
		return err
	}
	list := []object{}
	for _, key := range page.Keys {
		list = append(list, object{"key": key, "name": names[key]})
	}
	return ctx.JSON(200, object{"seats": list, "next": page.Next})
}

func grades(ctx *pluginhost.Context) error {
	student, err := strconv.ParseInt(ctx.HTTP.Params["student"], 10, 64)
	if err != nil {
		return err
	}
	db, err := ctx.Database("grades")
	if err != nil {
		return err
	}
	rows, err := db.Query("SELECT course, grade FROM grades WHERE student = $1 ORDER BY course", student)
	if err != nil {
		return err
	}
	list := []object{}
	for rows.Next() {
		var course string
		var grade int64
		if err := rows.Scan(&course, &grade); err != nil {
			return err
		}
		list = append(list, object{"course": course, "grade": grade})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return ctx.JSON(200, object{"grades": list})
}

func enter(ctx *pluginhost.Context) error {
	var sent struct {
		Student int64
		Courses []string
	}
	if err := ctx.HTTP.JSON(&sent); err != nil {
		return err
	}
	db, err := ctx.Database("grades")
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for _, course := range sent.Courses {
		if _, err := tx.Exec("INSERT INTO grades VALUES ($1, $2, 5)", sent.Student, course); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return ctx.JSON(201, object{"entered": len(sent.Courses)})
}

func weather(ctx *pluginhost.Context) error {
	answer, err := ctx.HTTPRequest(pluginhost.HTTPOrder{
		URL:     ctx.Config("service") + "/current?place=" + url.QueryEscape(ctx.HTTP.Params["place"]),
		Headers: map[string]string{"authorization": "Bearer " + ctx.Config("key")},
		Timeout: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	if answer.Status != 200 {
		return ctx.JSON(502, object{"error": fmt.Sprintf("the weather service answered %d", answer.Status)})
	}
	return ctx.JSON(200, json.RawMessage(answer.Body))
}

func lines(ctx *pluginhost.Context) error {
	var sent struct {
		FileID string `json:"file_id"`
	}
	if err := ctx.HTTP.JSON(&sent); err != nil {
		return err
	}
	meta, err := ctx.FileMeta(sent.FileID)
	if err != nil {
		return err
	}
	count := 0
	for offset, end := int64(0), false; !end; {
		var part []byte
		if part, end, err = ctx.FileRead(sent.FileID, offset, 0); err != nil {
			return err
		}
		count += bytes.Count(part, []byte("\n"))
		offset += int64(len(part))
	}
	return ctx.JSON(200, object{"name": meta.Name, "lines": count})
}

func report(ctx *pluginhost.Context) error {
	file, err := ctx.FileStoreWithTTL("seats.txt", "text/plain", "document", ctx.HTTP.BodyBytes(), time.Hour)
	if err != nil {
		return err
	}
	link, err := ctx.FileURL(file.ID)
	if err != nil {
		return err
	}
	return ctx.JSON(201, object{"id": file.ID, "url": link})
}

func dishes(ctx *pluginhost.Context) error {
	day := "today"
	if len(ctx.Message.Args) > 0 {
		day = ctx.Message.Args[0]
	}
	file, err := ctx.FileStoreWithTTL("dishes.txt", "text/plain", "document", []byte("Soup\n"), time.Hour)
	if err != nil {
		return err
	}
	message := pluginhost.NewMessage("The dishes of "+day).File(file, "Dishes")
	for _, photo := range ctx.Files() {
		message.File(photo, "Thank you")
	}
	return ctx.Reply(message)
}

func remind(ctx *pluginhost.Context) error {
	var sent struct{ Reader int64 }
	if err := ctx.HTTP.JSON(&sent); err != nil {
		return err
	}
	if err := ctx.NotifyUser(sent.Reader, pluginhost.NewMessage("Your book is due")); err != nil {
		return err
	}
	return ctx.SetHTTPResponse(202, nil, "")
}

func announce(ctx *pluginhost.Context) error {
	var sent struct{ Group, Text string }
	if err := ctx.HTTP.JSON(&sent); err != nil {
		return err
	}
	students := pluginhost.StudentFilter{Groups: []string{sent.Group}}
	queued, err := ctx.NotifyStudents(students, pluginhost.NewMessage(sent.Text))
	if err != nil {
		return err
	}
	return ctx.JSON(202, object{"queued": queued.Queued, "unreachable": queued.Unreachable})
}

func returned(ctx *pluginhost.Context) error {
	if err := ctx.PublishEvent("book.returned", object{"book": ctx.HTTP.Params["book"]}); err != nil {
		return err
	}
	return ctx.SetHTTPResponse(202, nil, "")
}

func outside(ctx *pluginhost.Context) error {
	answer, err := ctx.CallPlugin("weather", "temperature", object{"place": ctx.HTTP.Params["place"]})
	var refused *pluginhost.HostError
	if errors.As(err, &refused) {
		ctx.LogError("weather: " + refused.Message)
		return ctx.JSON(503, object{"error": refused.Code})
	}
	return errors.Join(err, ctx.JSON(200, answer))
}

func free(ctx *pluginhost.Context) error {
	var asked struct{ Seat int }
	if err := ctx.Call.Value(&asked); err != nil {
		return err
	}
	_, err := ctx.KVGet(fmt.Sprintf("seat:%d", asked.Seat))
	if err != nil && !errors.Is(err, pluginhost.ErrNotFound) {
		return err
	}
	return ctx.Output(object{"free": err != nil})
}

func main() {}
