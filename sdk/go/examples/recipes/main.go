// One handler for each recipe of docs/authors.md.
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
			{
				Name: "greet", Type: pluginhost.TriggerHTTP, Path: "/greet/:name",
				Methods: []string{"GET"}, Handler: greet,
				Access: pluginhost.Public("It shows what the caller sent"),
			},
			{Name: "order", Type: pluginhost.TriggerHTTP, Path: "/orders", Methods: []string{"POST"}, Handler: order},
			{Name: "table", Type: pluginhost.TriggerHTTP, Path: "/table", Methods: []string{"GET"}, Handler: table},
			{
				Name: "me", Type: pluginhost.TriggerHTTP, Path: "/me",
				Methods: []string{"GET"}, Handler: me,
				Access: pluginhost.UsersAndServiceKeys("Each caller sees who it is"),
			},
			{
				Name: "note", Type: pluginhost.TriggerHTTP, Path: "/notes/:name",
				Methods: []string{"GET", "PUT", "DELETE"}, Handler: note,
			},
			{Name: "visit", Type: pluginhost.TriggerHTTP, Path: "/visits", Methods: []string{"POST"}, Handler: visit},
			{
				Name: "claim", Type: pluginhost.TriggerHTTP, Path: "/seats/:seat",
				Methods: []string{"POST"}, Handler: claim,
				Access: pluginhost.Users("Users take seats"),
			},
			{
				Name: "release", Type: pluginhost.TriggerHTTP, Path: "/seats/:seat/release",
				Methods: []string{"POST"}, Handler: release,
				Access: pluginhost.Users("Users give back their seats"),
			},
			{Name: "seats", Type: pluginhost.TriggerHTTP, Path: "/seats", Methods: []string{"GET"}, Handler: seats},
			{
				Name: "grades", Type: pluginhost.TriggerHTTP, Path: "/grades/:student",
				Methods: []string{"GET"}, Handler: grades,
			},
			{
				Name: "enter", Type: pluginhost.TriggerHTTP, Path: "/grades",
				Methods: []string{"POST"}, Handler: enter,
				Access: pluginhost.ServiceKeys("The register enters grades"),
			},
			{
				Name: "weather", Type: pluginhost.TriggerHTTP, Path: "/weather/:place",
				Methods: []string{"GET"}, Handler: weather,
			},
			{
				Name: "lines", Type: pluginhost.TriggerHTTP, Path: "/lines",
				Methods: []string{"POST"}, Handler: lines,
				Access: pluginhost.Users("Users have their files counted"),
			},
			{
				Name: "report", Type: pluginhost.TriggerHTTP, Path: "/reports",
				Methods: []string{"POST"}, Handler: report,
				Access: pluginhost.Users("Users store reports"),
			},
			{Name: "dishes", Type: pluginhost.TriggerMessenger, Description: "The dishes of a day", Handler: dishes},
			{
				Name: "remind", Type: pluginhost.TriggerHTTP, Path: "/reminders",
				Methods: []string{"POST"}, Handler: remind,
				Access: pluginhost.ServiceKeys("The library reminds its readers"),
			},
			{
				Name: "announce", Type: pluginhost.TriggerHTTP, Path: "/announcements",
				Methods: []string{"POST"}, Handler: announce,
				Access: pluginhost.Users("Deans write to groups").WithPolicy(`has_role("dean")`),
			},
			{
				Name: "returned", Type: pluginhost.TriggerHTTP, Path: "/returned/:book",
				Methods: []string{"POST"}, Handler: returned,
			},
			{
				Name: "outside", Type: pluginhost.TriggerHTTP, Path: "/outside/:place",
				Methods: []string{"GET"}, Handler: outside,
			},
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
	if err := ctx.HTTP.JSON(&sent); err != nil || sent.Dish == "" {
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
	if auth.Kind == "user" {
		return ctx.JSON(200, object{"kind": auth.Kind, "id": auth.UserID})
	}
	return ctx.JSON(200, object{"kind": auth.Kind, "id": auth.ServiceKeyID})
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
	if err == nil && ctx.HTTP.Method == "DELETE" {
		_, err = ctx.KVDelete(key)
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
	auth := ctx.HTTP.Auth
	if auth == nil || auth.Kind != "user" {
		return ctx.JSON(401, object{"error": "log in first"})
	}
	key, user := "seat:"+ctx.HTTP.Params["seat"], fmt.Sprint(auth.UserID)
	claimed, err := ctx.KVSetIfAbsent(key, user, 0)
	if err == nil && !claimed.Written && *claimed.Present == "" {
		claimed, err = ctx.KVCompareAndSet(key, "", user, 0)
	}
	if err != nil {
		return err
	}
	if !claimed.Written {
		return ctx.JSON(409, object{"error": "the seat is taken"})
	}
	return ctx.JSON(201, object{"user": user})
}

func release(ctx *pluginhost.Context) error {
	auth := ctx.HTTP.Auth
	if auth == nil || auth.Kind != "user" {
		return ctx.JSON(401, object{"error": "log in first"})
	}
	released, err := ctx.KVCompareAndSet("seat:"+ctx.HTTP.Params["seat"], fmt.Sprint(auth.UserID), "", 0)
	if err != nil {
		return err
	}
	if !released.Written {
		return ctx.JSON(409, object{"error": "the seat is not yours"})
	}
	return ctx.SetHTTPResponse(204, nil, "")
}

func seats(ctx *pluginhost.Context) error {
	page, err := ctx.KVList("seat:", ctx.HTTP.Query["after"], 50)
	if err != nil {
		return err
	}
	users, err := ctx.KVGetMany(page.Keys)
	if err != nil {
		return err
	}
	list := []object{}
	for _, key := range page.Keys {
		list = append(list, object{"key": key, "user": users[key]})
	}
	return ctx.JSON(200, object{"seats": list, "next": page.Next})
}

func grades(ctx *pluginhost.Context) error {
	student, err := strconv.ParseInt(ctx.HTTP.Params["student"], 10, 64)
	if err != nil {
		return ctx.JSON(404, object{"error": "there is no such student"})
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
	if _, err := tx.Exec("CREATE TABLE IF NOT EXISTS grades (student bigint, course text, grade int)"); err != nil {
		return errors.Join(err, tx.Rollback())
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
	for _, photo := range ctx.Files() {
		ctx.Log(fmt.Sprintf("%s came along, %d bytes", photo.Name, photo.Size))
	}
	return ctx.Reply(pluginhost.NewMessage("The dishes of "+day).File(file, "Dishes"))
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
	students := pluginhost.Students().Groups(sent.Group)
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
	if err != nil {
		return err
	}
	return ctx.JSON(200, answer)
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
