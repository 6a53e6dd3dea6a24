// Grades in a database of the university: queries, a transaction, and a function for other plugins. It expects
//
//	CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course));
package main

import (
	"errors"
	"strconv"
	"strings"

	"pluginhost"
)

func init() {
	pluginhost.Register(pluginhost.Plugin{
		ID:      "grades",
		Name:    "Grades",
		Version: "1.0.0",
		Requirements: []*pluginhost.Requirement{
			pluginhost.Database("Reads and writes the grades of students").Name("grades").Build(),
		},
		Functions: map[string]pluginhost.Handler{"average": average},
		Triggers: []pluginhost.Trigger{{
			Name:        "grades",
			Type:        pluginhost.TriggerHTTP,
			Path:        "/students/:id",
			Methods:     []string{"GET", "PUT"},
			Description: "Shows a student's grades, or takes several over at once",
			Handler:     grades,
		}},
	})
}

// Grade is a row, as callers send and get it.
type Grade struct {
	Course string `json:"course"`
	Grade  int64  `json:"grade"`
}

func refuse(ctx *pluginhost.Context, status int, text string) error {
	return ctx.JSON(status, map[string]string{"error": text})
}

func grades(ctx *pluginhost.Context) error {
	student, err := strconv.ParseInt(ctx.HTTP.Params["id"], 10, 64)
	if err != nil || student <= 0 {
		return refuse(ctx, 400, "the student's id must be a number above 0")
	}
	handle := show
	if ctx.HTTP.Method == "PUT" {
		handle = put
	}
	err = handle(ctx, student)
	var refused *pluginhost.HostError
	if errors.As(err, &refused) {
		return refuse(ctx, statusOf(refused), refused.Message)
	}
	return err
}

// statusOf looks at the SQLSTATE in front of the message; class 23 is data that a constraint refuses.
func statusOf(refused *pluginhost.HostError) int {
	switch {
	case strings.HasPrefix(refused.Message, "23"):
		return 422
	case refused.Code == pluginhost.CodeUnavailable:
		return 503
	}
	return 500
}

func show(ctx *pluginhost.Context, student int64) error {
	db, err := ctx.Database("grades")
	if err != nil {
		return err
	}
	rows, err := db.Query("SELECT course, grade FROM grades WHERE student = $1 ORDER BY course", student)
	if err != nil {
		return err
	}
	list := []Grade{}
	for rows.Next() {
		var g Grade
		if err := rows.Scan(&g.Course, &g.Grade); err != nil {
			return err
		}
		list = append(list, g)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return ctx.JSON(200, map[string]any{"student": student, "grades": list})
}

// put takes all grades over or none.
func put(ctx *pluginhost.Context, student int64) error {
	var given []Grade
	if err := ctx.HTTP.JSON(&given); err != nil || len(given) == 0 {
		return refuse(ctx, 400, `send [{"course": ..., "grade": 2 to 5}]`)
	}
	db, err := ctx.Database("grades")
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for _, g := range given {
		_, err := tx.Exec(
			"INSERT INTO grades VALUES ($1, $2, $3) ON CONFLICT (student, course) DO UPDATE SET grade = excluded.grade",
			student, g.Course, g.Grade,
		)
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return ctx.JSON(200, map[string]any{"student": student, "taken": len(given)})
}

// average is for other plugins: the average of a student, {"student": id} -> {"average": "4.50"} or null.
func average(ctx *pluginhost.Context) error {
	var asked struct{ Student int64 }
	if err := ctx.Call.Value(&asked); err != nil {
		return err
	}
	db, err := ctx.Database("grades")
	if err != nil {
		return err
	}
	rows, err := db.Query("SELECT round(avg(grade), 2) FROM grades WHERE student = $1", asked.Student)
	if err != nil {
		return err
	}
	if !rows.Next() {
		return errors.Join(errors.New("the database gave no row"), rows.Err())
	}
	var average *string
	if err := rows.Scan(&average); err != nil {
		return err
	}
	return ctx.Output(map[string]any{"average": average})
}

func main() {}
