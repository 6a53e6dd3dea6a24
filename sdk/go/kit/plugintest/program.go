package plugintest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// program is plugin-host, which runs the sandbox. It reads and writes one JSON value a line, and ends with its input.
type program struct {
	in      io.Writer
	writing sync.Mutex
	// What waits for an answer, and the hosts, by their numbers.
	mutex   sync.Mutex
	next    int
	waiting map[int]chan reply
	hosts   map[int]Options
	// Why it cannot be asked any more.
	ended error
}

// reply is what plugin-host says: the answer of a question, or a question of its own, for what is outside the sandbox.
type reply struct {
	ID    int             `json:"id"`
	OK    json.RawMessage `json:"ok"`
	Error string          `json:"error"`
	Ask   int             `json:"ask"`
	Host  int             `json:"host"`
	// Of a question: a request to another host, or a call of another plugin.
	Request *Request        `json:"request"`
	Plugin  string          `json:"plugin"`
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
}

var started = sync.OnceValues(start)

func theProgram(t testing.TB) *program {
	t.Helper()
	p, err := started()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// command gives the program and its arguments: plugin-host plugin test says which one it is.
func command() ([]string, error) {
	if set := os.Getenv("PLUGIN_HOST_TEST"); set != "" {
		var words []string
		if err := json.Unmarshal([]byte(set), &words); err != nil || len(words) == 0 {
			return nil, fmt.Errorf("PLUGIN_HOST_TEST is no JSON list of words: %s", set)
		}
		return words, nil
	}
	found, err := exec.LookPath("plugin-host")
	if err != nil {
		return nil, errors.New("plugin-host is not in PATH: run the tests with plugin-host plugin test, or install it (npm install --global)")
	}
	return []string{found, "plugin", "test", "--serve"}, nil
}

func start() (*program, error) {
	words, err := command()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", strings.Join(words, " "), err)
	}
	p := &program{in: in, waiting: map[int]chan reply{}, hosts: map[int]Options{}}
	go p.read(out)
	return p, nil
}

func (p *program) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var r reply
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			p.end(fmt.Errorf("plugin-host has ended: %w", err))
			return
		}
		if r.Ask != 0 {
			go p.answer(r)
			continue
		}
		p.mutex.Lock()
		waits := p.waiting[r.ID]
		delete(p.waiting, r.ID)
		p.mutex.Unlock()
		if waits != nil {
			waits <- r
		}
	}
}

func (p *program) end(why error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.ended = why
	for id, waits := range p.waiting {
		delete(p.waiting, id)
		waits <- reply{Error: why.Error()}
	}
}

func (p *program) write(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err = p.in.Write(append(line, '\n'))
	return err
}

// answer gives what Options say is outside the sandbox. A function of the test that panics fails the call alone.
func (p *program) answer(r reply) {
	given := map[string]any{"answer": r.Ask}
	if err := p.outside(r, given); err != nil {
		given = map[string]any{"answer": r.Ask, "error": err.Error()}
	}
	if err := p.write(given); err != nil {
		// When the program has ended, read says so to those that wait for it; what is no JSON is said here.
		_ = p.write(map[string]any{"answer": r.Ask, "error": err.Error()})
	}
}

func (p *program) outside(r reply, given map[string]any) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the function of the test panicked: %v", reason)
		}
	}()
	p.mutex.Lock()
	options := p.hosts[r.Host]
	p.mutex.Unlock()
	if r.Request != nil {
		if options.HTTP == nil {
			return errors.New("the test has ended")
		}
		given["response"] = options.HTTP(*r.Request)
		return nil
	}
	function := options.Plugins[r.Plugin][r.Name]
	if function == nil {
		return errors.New("the test has ended")
	}
	given["value"] = function(r.Value)
	return nil
}

func (p *program) hold(options Options) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.next++
	p.hosts[p.next] = options
	return p.next
}

func (p *program) release(host int) {
	_ = p.write(map[string]any{"id": 0, "do": "close", "host": host})
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.hosts, host)
}

// ask ends the test when plugin-host refuses, such as a path no trigger has or a plugin that does not build.
func (h *Host) ask(do string, with map[string]any, into any) {
	h.t.Helper()
	p := theProgram(h.t)
	waits := make(chan reply, 1)
	p.mutex.Lock()
	if p.ended != nil {
		p.mutex.Unlock()
		h.t.Fatal(p.ended)
	}
	p.next++
	id := p.next
	p.waiting[id] = waits
	p.mutex.Unlock()
	if err := p.write(map[string]any{"id": id, "do": do, "host": h.number, "with": with}); err != nil {
		h.t.Fatal(err)
	}
	r := <-waits
	if r.Error != "" {
		h.t.Fatalf("%s: %s", do, r.Error)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(r.OK, into); err != nil {
		h.t.Fatalf("%s: %v", do, err)
	}
}
