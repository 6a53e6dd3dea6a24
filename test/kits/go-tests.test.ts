import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { buildPlugin } from '../../sdk/go/build.ts';
import { TestHost } from '../../src/authors/test-host.ts';
import { made, run } from '../support/author.ts';
import { missingToolchain } from '../support/toolchains.ts';

/** Tests of plugins in Go, by the package `plugintest` of the kit (sdk/go/README.md "Test it"). */

const noGo = missingToolchain('go');

const PASSING = `package main

import (
	"encoding/json"
	"testing"

	"pluginhost/plugintest"
)

func start(t *testing.T) *plugintest.Host {
	return plugintest.Start(t, plugintest.Options{
		Config: map[string]string{"service": "https://weather.example", "key": "a secret"},
		HTTP: func(r plugintest.Request) plugintest.Response {
			if r.Headers["authorization"] != "Bearer a secret" {
				return plugintest.Response{Status: 401}
			}
			return plugintest.Response{Body: []byte(\`{"temperature":-7.5}\`)}
		},
		Plugins: map[string]map[string]func(json.RawMessage) any{
			"weather": {"temperature": func(value json.RawMessage) any { return map[string]any{"asked": value} }},
		},
	})
}

func is(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOutside(t *testing.T) {
	host := start(t)
	is(t, host.HTTP("GET /weather/Kazan").Text(), \`{"temperature":-7.5}\`)
	is(t, host.Requests()[0].URL, "https://weather.example/current?place=Kazan")
	is(t, host.HTTP("GET /outside/Oslo").Text(), \`{"asked":{"place":"Oslo"}}\`)
}

func TestWhatItKeepsAndSends(t *testing.T) {
	host := start(t)
	is(t, host.HTTP("POST /seats/3", plugintest.As{User: 7, KV: map[string]string{"seat:3": "8"}}).Text(), \`{"error":"the seat is taken"}\`)
	if status := host.HTTP("POST /seats/4", plugintest.As{ServiceKey: 2, Access: &plugintest.Access{}}).Status; status != 403 {
		t.Error("seats are for users:", status)
	}
	if _, found := host.KV("seat:4"); found {
		t.Error("seat 4 is free")
	}
	returned := host.Call("free", map[string]int{"seat": 3}, plugintest.As{From: "other"})
	is(t, string(returned.Bytes), \`{"free":false}\`)
	host.HTTP("POST /reminders", plugintest.As{ServiceKey: 2, Body: map[string]int64{"reader": 9007199254740991}})
	is(t, string(host.Notifications()[0].To), \`{"user":9007199254740991}\`)
	host.HTTP("POST /returned/978")
	is(t, host.Events()[0].Name+string(host.Events()[0].Payload), \`book.returned{"book":"978"}\`)
	is(t, host.HTTP("GET /me", plugintest.As{User: 7}).Text(), \`{"id":7,"kind":"user"}\`)
	photo := host.AddFile(plugintest.File{Name: "dish.jpg", Bytes: []byte{0, 255}, MIMEType: "image/jpeg", FileType: "photo"})
	replied := host.Message("/dishes tomorrow", plugintest.As{Files: []string{photo}})
	is(t, replied.Replies[0].Text+replied.Replies[0].Files[0].Caption, "The dishes of tomorrowDishes")
	is(t, replied.Logs[0].Text, "dish.jpg came along, 2 bytes")
	answer := host.HTTP("POST /lines", plugintest.As{User: 7, Body: "no JSON"})
	if answer.Status != 502 || answer.Outcome != "handler_error" || answer.Failure == "" {
		t.Error(answer)
	}
}

func TestItsOwnFunctions(t *testing.T) {
	is(t, string(must(json.Marshal(object{"a": 1}))), \`{"a":1}\`)
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
`;

const FAILING = `package main

import (
	"testing"

	"pluginhost/plugintest"
)

func TestWithoutConfiguration(t *testing.T) { plugintest.Start(t, plugintest.Options{}) }

func TestAPathNoTriggerHas(t *testing.T) { start(t).HTTP("GET /seat") }

func TestAnOptionOfOtherCalls(t *testing.T) { start(t).HTTP("GET /seats", plugintest.As{From: "x"}) }

func TestWithoutAHost(t *testing.T) { _ = greet(nil) }
`;

t.test('a build names what a plugin in Go will not find in the sandbox', { skip: noGo ?? false }, async t => {
  const folder = await made(t, 'outside', '--lang', 'go');
  const source = `package main

import (
	"os"
	"os/exec"
)

// os.Open( is only named here.
var words = "os.Create( is only a text"

func outside() ([]byte, error) {
	if err := exec.Command("ls").Run(); err != nil {
		return nil, err
	}
	return os.ReadFile("menu.txt")
}
`;
  fs.writeFileSync(path.join(folder, 'outside.go'), source);
  const { code, out } = await run(['build', folder]);
  t.equal(code, 0, out);
  t.match(out, /^warning: outside\.go:12:12: exec\.Command does not work in a plugin: a plugin starts no programs$/m);
  t.match(out, /^warning: outside\.go:15:9: os\.ReadFile does not work in a plugin: .*embed/m);
  t.notMatch(out, /os\.(Open|Create)/);

  const zones =
    'package main\n\nimport (\n\t"net/http"\n\t"time"\n)\n\nfunc outside() {\n\t_, _ = time.LoadLocation("Europe/Berlin")\n\t_, _ = (&http.Client{}).Get("x")\n}\n';
  fs.writeFileSync(path.join(folder, 'outside.go'), zones);
  const named = await run(['build', folder]);
  t.match(named.out, /^warning: outside\.go:9:9: time\.LoadLocation fails: import _ "time\/tzdata" brings the zones/m);
  t.match(named.out, /^warning: outside\.go:10:11: http\.Client does not work in a plugin: .*use ctx\.HTTPRequest$/m);
  fs.writeFileSync(path.join(folder, 'outside.go'), zones.replace('"time"', '"time"\n\t_ "time/tzdata"'));
  t.notMatch((await run(['build', folder])).out, /LoadLocation/);
  fs.rmSync(path.join(folder, 'outside.go'));

  const main = path.join(folder, 'main.go');
  const sourceOfMain = fs.readFileSync(main, 'utf8');
  fs.writeFileSync(main, sourceOfMain.replace('func main() {}', ''));
  t.match(await run(['build', folder]), { code: 3, err: /package main has no function main: add func main\(\) \{\}/ });
  const tests = path.join(folder, 'plugin_test.go');
  fs.rmSync(tests);
  fs.writeFileSync(main, sourceOfMain.replace('package main', 'package hello'));
  t.match(await run(['build', folder]), { code: 3, err: /the files of a plugin begin with "package main"/ });
  fs.writeFileSync(main, sourceOfMain);
  const modules = path.join(folder, 'go.mod');
  fs.writeFileSync(modules, fs.readFileSync(modules, 'utf8').replace(/^replace.*$/m, ''));
  t.match(await run(['build', folder]), { code: 3, err: /go\.mod needs the lines .*"replace pluginhost => \.\/kit"/ });
});

t.test('a build names the packages that connect to other hosts by themselves', { skip: noGo ?? false }, async t => {
  const folder = await made(t, 'library', '--lang', 'go');
  fs.mkdirSync(path.join(folder, 'feed'));
  const write = (body: string): void =>
    fs.writeFileSync(
      path.join(folder, 'feed/feed.go'),
      `package feed\n\nimport "net/http"\n\nvar IsWanted bool\n\nfunc Status() (int, error) {\n${body}\n}\n`,
    );
  write(
    '\tr, err := new(http.Client).Get("http://feed.example")\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\treturn r.StatusCode, nil',
  );
  fs.writeFileSync(
    path.join(folder, 'uses.go'),
    'package main\n\nimport "library/feed"\n\nfunc init() {\n\tif feed.IsWanted {\n\t\t_, _ = feed.Status()\n\t}\n}\n',
  );
  const connects = await run(['build', folder]);
  t.equal(connects.code, 0, connects.out + connects.err);
  t.match(connects.out, /^warning: library\/feed connects to other hosts by itself, .*: use ctx\.HTTPRequest$/m);
  write('\treturn http.StatusOK, nil');
  const names = await run(['build', folder]);
  t.equal(names.code, 0, names.out + names.err);
  t.notMatch(names.out, /connects/, 'constants of net/http need no network');
});

const SCANS = `package pluginhost

import (
	"encoding/json"
	"testing"
	"time"
)

func rows(values ...string) *Rows {
	r := &Rows{Columns: []string{"name", "n"}, types: []string{"text", "int8"}}
	for _, value := range values {
		var row []json.RawMessage
		if err := json.Unmarshal([]byte(value), &row); err != nil {
			panic(err)
		}
		r.page.Rows = append(r.page.Rows, row)
	}
	r.at = -1
	return r
}

func TestScan(t *testing.T) {
	r := rows(\`["ada", 9007199254740993]\`, \`[null, 2]\`)
	var name string
	var n any
	r.at = 0
	if err := r.Scan(&name, &n); err != nil || name != "ada" || n.(json.Number).String() != "9007199254740993" {
		t.Error(err, name, n)
	}
	r.at = 1
	err := r.Scan(&name, &n)
	if err == nil || err.Error() != "column name (text): it is NULL: scan it into **string, or select coalesce(...)" {
		t.Error("a NULL leaves the name of the row before:", name, err)
	}
	var maybe *string
	if err := r.Scan(&maybe, &n); err != nil || maybe != nil {
		t.Error(err, maybe)
	}
	r = rows(\`["ada", {"a": 1}]\`, \`["bob", {"b": 2}]\`)
	var kept []*string
	var document map[string]int
	for r.at = 0; r.at < 2; r.at++ {
		if err := r.Scan(&maybe, &document); err != nil || len(document) != 1 {
			t.Error(err, document)
		}
		kept = append(kept, maybe)
	}
	if *kept[0] != "ada" || *kept[1] != "bob" {
		t.Error(*kept[0], *kept[1])
	}
	r = rows(\`["2026-12-01T10:00:00Z", 1]\`, \`[null, 1]\`)
	var at time.Time
	r.at = 0
	if err := r.Scan(&at, &n); err != nil || at.Year() != 2026 {
		t.Error(err, at)
	}
	r.at = 1
	if err := r.Scan(&at, &n); err == nil {
		t.Error("a time has no NULL")
	}
	if err := r.Scan(name, &n); err == nil {
		t.Error("a value that is no pointer gets nothing")
	}
}
`;

t.test(
  'a row is read whole or not at all: NULL and large numbers become no other value',
  { skip: noGo ?? false },
  t => {
    const kit = t.testdir({});
    fs.cpSync(path.resolve(import.meta.dirname, '../../sdk/go/kit'), kit, { recursive: true });
    fs.writeFileSync(path.join(kit, 'scan_test.go'), SCANS);
    const { status, stdout } = spawnSync('go', ['test', '-count=1', '.'], { cwd: kit, encoding: 'utf8' });
    t.equal(status, 0, stdout);
    t.end();
  },
);

t.test(
  'tests run against the module as it is now, also when no file of theirs has changed',
  { skip: noGo ?? false },
  async t => {
    const folder = await made(t, 'again', '--lang', 'go');
    fs.mkdirSync(path.join(folder, 'outer'));
    for (const file of fs.readdirSync(folder).filter(name => name.endsWith('_test.go')))
      fs.renameSync(path.join(folder, file), path.join(folder, 'outer', file));
    const first = await run(['test', folder]);
    t.equal(first.code, 0, first.out);
    const main = path.join(folder, 'main.go');
    fs.writeFileSync(main, fs.readFileSync(main, 'utf8').replace('Hello, ', 'Goodbye, '));
    const second = await run(['test', folder]);
    t.equal(second.code, 1, second.out);
  },
);

t.test('a plugin that asks for a Go which is not installed is refused in words', { skip: noGo ?? false }, async t => {
  const folder = await made(t, 'newer', '--lang', 'go');
  // As where the Go command has downloaded the toolchain that go.mod names.
  const root = spawnSync('go', ['env', 'GOROOT'], { encoding: 'utf8' }).stdout.trim();
  const { code, err } = await run(['build', folder], { GOMODCACHE: path.dirname(root) });
  t.match(
    { code, err },
    { code: 1, err: /go\.mod asks for go\d\S+, which is not installed: install it from .*go\.dev\/dl/ },
  );
});

t.test('a panic before a plugin is declared is named with its place', { skip: noGo ?? false }, async t => {
  const folder = await made(t, 'early', '--lang', 'go');
  fs.writeFileSync(
    path.join(folder, 'early.go'),
    'package main\n\nfunc init() {\n\tvar seats map[string]int\n\tseats["a"] = 1\n}\n',
  );
  const { code, err, out } = await run(['build', folder]);
  t.equal(code, 3);
  t.match(out + err, /early\.go:5: it ended at its start: panic: assignment to entry in nil map/);
  t.notMatch(out + err, /unreachable|goroutine/);
});

/** Handlers that panic, by the trigger; one has a name that begins like the function that starts a program. */
const PANICS = `package main

import "pluginhost"

var zero int

func init() {
	triggers := []pluginhost.Trigger{}
	for path, handler := range map[string]func(*pluginhost.Context) error{
		"/divide": mainPage, "/index": index, "/deep": outer, "/other": elsewhere, "/wait": blocked,
	} {
		triggers = append(triggers, pluginhost.Trigger{
			Name: path[1:], Type: pluginhost.TriggerHTTP, Path: path, Methods: []string{"GET"}, Handler: handler,
		})
	}
	pluginhost.Register(pluginhost.Plugin{ID: "panics", Name: "Panics", Version: "1.0.0", Triggers: triggers})
}

func mainPage(ctx *pluginhost.Context) error { return ctx.JSON(200, 7/zero) }

func index(ctx *pluginhost.Context) error { return ctx.JSON(200, []int{1}[len(ctx.RequestID)]) }

func outer(ctx *pluginhost.Context) error { return inner(nil) }

func inner(notes map[string]int) error {
	notes["a"] = 1
	return nil
}

func elsewhere(ctx *pluginhost.Context) error {
	done := make(chan int)
	go func() { done <- []int{1}[len(ctx.RequestID)] }()
	return ctx.JSON(200, <-done)
}

func blocked(ctx *pluginhost.Context) error { return ctx.JSON(200, <-make(chan int)) }

func main() {}
`;

t.test('a panic in Go names the functions, files and lines of the author', { skip: noGo ?? false }, async t => {
  const folder = await made(t, 'panics', '--lang', 'go');
  fs.writeFileSync(path.join(folder, 'main.go'), PANICS);
  const { module } = await buildPlugin(path.join(folder, 'main.go'));
  const host = new TestHost(module, {});
  t.teardown(() => host.close());
  const failureOf = async (trigger: string): Promise<string> => (await host.http(`GET /${trigger}`)).failure;
  t.match(await failureOf('divide'), /divide by zero[\s\S]*at main\.mainPage \(\S*main\.go:19\)/);
  t.match(await failureOf('index'), /index out of range[\s\S]*at main\.index \(\S*main\.go:21\)/);
  t.match(
    await failureOf('deep'),
    /nil map[\s\S]*at main\.inner \(\S*main\.go:26\)[\s\S]*at main\.outer \(\S*main\.go:23\)/,
  );
  t.match(
    await failureOf('other'),
    /^panic: runtime error: index out of range.*\n {4}at main\.elsewhere\.func1 \(\S*main\.go:32\)/,
    'a panic of another goroutine, from which nothing recovers',
  );
  t.match(
    await failureOf('wait'),
    /^fatal error: all goroutines are asleep - deadlock!\n {4}at main\.blocked \(\S*main\.go:36\)/,
  );
});

t.test('plugin test runs tests in Go against the built module', { skip: noGo ?? false }, async t => {
  const folder = await made(t, 'tested', '--lang', 'go', '--template', 'recipes');
  fs.rmSync(path.join(folder, 'test'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'plugin_test.go'), PASSING);
  const passed = await run(['test', folder]);
  t.match(passed, { code: 0, out: /^ok\s+tested\s/m }, passed.out);

  fs.writeFileSync(path.join(folder, 'failing_test.go'), FAILING);
  const failed = await run(['test', folder]);
  t.equal(failed.code, 1);
  const says = [
    /failing_test\.go:9: open: the plugin requires the configuration field "service"/,
    /failing_test\.go:11: http: the plugin has no trigger for "GET \/seat"; it has GET \/greet\/:name/,
    /failing_test\.go:13: http: http\(\) has no option "from"/,
    /panic: runtime error: invalid memory address/,
  ];
  for (const said of says) t.match(failed.out, said);

  const named = await run(['test', folder, 'plugin_test.go']);
  t.match(named, { code: 0, out: /^ok\s+tested\s/m }, 'only the tests of a file that is named');
  const other = await run(['test', folder, 'main.go']);
  t.match(other, { code: 1, err: /main\.go is no test: the name of one ends with \.test\.ts, \.http or _test\.go/ });
  const missing = await run(['test', folder, 'gone_test.go']);
  t.match(missing, {
    code: 1,
    err: /there is no .*gone_test\.go: test files are named as seen from the plugin's folder/,
  });
});
