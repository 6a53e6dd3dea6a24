package pluginhost

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Statements is where statements go: a connection or a transaction.
type Statements struct{ handle int32 }

// Connection is a session of its own. An execution may have two open to one database.
type Connection struct{ Statements }

// Transaction is rolled back when the execution ends without Commit.
type Transaction struct{ Statements }

// Database opens a connection to a database by its logical name ("" is "default"): the requirement Database.
func (c *Context) Database(name string) (*Connection, error) {
	p, n := text(name)
	handle := hostSQLOpen(p, n)
	if err := check(handle); err != nil {
		return nil, err
	}
	return &Connection{Statements{handle}}, nil
}

// Begin begins a transaction.
func (c *Connection) Begin() (*Transaction, error) {
	handle := hostSQLBegin(c.handle)
	if err := check(handle); err != nil {
		return nil, err
	}
	return &Transaction{Statements{handle}}, nil
}

// Close gives the connection back.
func (c *Connection) Close() error { return check(hostSQLClose(c.handle)) }

// Commit ends the transaction.
func (t *Transaction) Commit() error { return check(hostSQLCommit(t.handle)) }

// Rollback undoes the transaction.
func (t *Transaction) Rollback() error { return check(hostSQLRollback(t.handle)) }

// wire turns an argument into what the host takes: []byte is bytes, a slice or array is an array of the database, a map
// or struct is JSON, and so is json.RawMessage.
func wire(value any) any {
	switch v := value.(type) {
	case []byte:
		return map[string]string{"base64": base64.StdEncoding.EncodeToString(v)}
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case json.RawMessage:
		return map[string]json.RawMessage{"json": v}
	case json.Marshaler, encoding.TextMarshaler:
		return v
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return wire(v.Elem().Interface())
	case reflect.Slice, reflect.Array:
		elements := make([]any, v.Len())
		for k := range elements {
			elements[k] = wire(v.Index(k).Interface())
		}
		return map[string][]any{"array": elements}
	case reflect.Map, reflect.Struct:
		return map[string]any{"json": value}
	}
	return value
}

func wireAll(values []any) ([]byte, error) {
	list := make([]any, len(values))
	for k, v := range values {
		list[k] = wire(v)
	}
	return encode(list)
}

type page struct {
	Columns []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"columns"`
	Rows   [][]json.RawMessage `json:"rows"`
	Cursor *int32              `json:"cursor"`
}

// Rows is what a statement gave; further pages are fetched as they are asked for.
type Rows struct {
	page page
	// Columns are the names of the columns.
	Columns []string
	types   []string
	at      int
	err     error
}

// Query runs one statement that gives rows. An error begins with the SQLSTATE.
func (s *Statements) Query(statement string, values ...any) (*Rows, error) {
	list, err := wireAll(values)
	if err != nil {
		return nil, err
	}
	p, n := text(statement)
	v, vn := raw(list)
	rows := &Rows{at: -1}
	if err := parkedJSON(hostSQLQuery(s.handle, p, n, v, vn, 0), &rows.page); err != nil {
		return nil, err
	}
	for _, c := range rows.page.Columns {
		rows.Columns = append(rows.Columns, c.Name)
		rows.types = append(rows.types, c.Type)
	}
	return rows, nil
}

// Exec runs one statement and gives how many rows it changed.
func (s *Statements) Exec(statement string, values ...any) (int64, error) {
	list, err := wireAll(values)
	if err != nil {
		return 0, err
	}
	p, n := text(statement)
	v, vn := raw(list)
	var done struct {
		RowsAffected int64 `json:"rows_affected"`
	}
	err = parkedJSON(hostSQLExec(s.handle, p, n, v, vn), &done)
	return done.RowsAffected, err
}

// Next goes on to the next row; false behind the last one and when it failed (Err).
func (r *Rows) Next() bool {
	r.at++
	for r.err == nil && r.at >= len(r.page.Rows) && r.page.Cursor != nil {
		var next page
		r.err = parkedJSON(hostSQLFetch(*r.page.Cursor, 0), &next)
		r.page.Rows, r.page.Cursor, r.at = next.Rows, next.Cursor, 0
	}
	return r.err == nil && r.at < len(r.page.Rows)
}

// Err is why there are no further rows; nil at the end.
func (r *Rows) Err() error { return r.err }

// Close gives the connection back to other statements before the last row.
func (r *Rows) Close() {
	if r.page.Cursor != nil {
		hostSQLClose(*r.page.Cursor)
	}
	r.page = page{}
}

// Scan reads the values of the row: into pointers of Go types, []byte for bytea and for the text of others, any
// (numbers are json.Number then).
// NULL needs a pointer to a pointer, as &name with name *string.
func (r *Rows) Scan(into ...any) error {
	if r.at < 0 || r.at >= len(r.page.Rows) {
		return fmt.Errorf("there is no row: call Next first")
	}
	row := r.page.Rows[r.at]
	if len(into) != len(row) {
		return fmt.Errorf("the row has %d columns, and %d values are wanted", len(row), len(into))
	}
	for k, target := range into {
		if err := scanValue(row[k], r.types[k], target); err != nil {
			return fmt.Errorf("column %s (%s): %w", r.Columns[k], r.types[k], err)
		}
	}
	return nil
}

// scanValue decodes one value. JSON leaves a Go value as it is for null, and rounds numbers of any: both would give
// another value than the row has.
func scanValue(value json.RawMessage, column string, target any) error {
	into := reflect.ValueOf(target)
	if into.Kind() != reflect.Pointer || into.IsNil() {
		return fmt.Errorf("a pointer is wanted, not %T", target)
	}
	holdsNull := false
	switch into.Elem().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		holdsNull = true
	}
	if !holdsNull && string(value) == "null" {
		return fmt.Errorf("it is NULL: scan it into **%s, or select coalesce(...)", into.Elem().Type())
	}
	// What a variable holds from the row before is neither changed nor mixed with this one.
	into.Elem().SetZero()
	if content, ok := target.(*[]byte); ok && column != "bytea" && string(value) != "null" {
		*content = bytesOf(value)
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	return decoder.Decode(target)
}

// bytesOf gives the text of a value that is no bytea.
func bytesOf(value json.RawMessage) []byte {
	var content string
	if json.Unmarshal(value, &content) == nil {
		return []byte(content)
	}
	return append([]byte{}, value...)
}

// Row gives the values of the row by the names of their columns; numbers are json.Number.
func (r *Rows) Row() (map[string]any, error) {
	values := make(map[string]any, len(r.Columns))
	for k, name := range r.Columns {
		decoder := json.NewDecoder(bytes.NewReader(r.page.Rows[r.at][k]))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}
