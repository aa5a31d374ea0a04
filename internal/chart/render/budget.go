package render

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// budget counts the resources that a render uses. Its methods panic if a limit is
// exceeded, because not all template functions return errors; text/template converts the
// panic to an error.
type budget struct {
	ctx    context.Context
	limits Limits
	// largeLock is the lock of the large render, and holds is true if this render holds it.
	largeLock chan struct{}
	holds     bool
	// lend is Options.Lend, and resume is its result while the slot is released.
	lend   func() (resume func())
	resume func()

	steps, memory, parsed, depth int

	// began is the start of the render, plus the time that the render has waited.
	began time.Time
	// check is the step at which the clock is checked next.
	check int
	// file is the file that is being rendered.
	file string
	// err is the reason why the render has ended. All later calls fail with it.
	err error
}

func newBudget(ctx context.Context, limits Limits, largeLock chan struct{}) *budget {
	return &budget{ctx: ctx, limits: limits, largeLock: largeLock, began: time.Now()}
}

// end releases the lock of the large render, and then acquires the action's slot again.
func (b *budget) end() {
	if b.holds {
		<-b.largeLock
	}
	if b.resume != nil {
		b.resume()
	}
}

// stop ends the render.
func (b *budget) stop(err error) {
	if b.err == nil {
		b.err = err
	}
	panic(b.err)
}

func (b *budget) exceededf(format string, args ...any) {
	b.stop(&LimitError{File: b.file, Exceeded: fmt.Sprintf(format, args...)})
}

// clockSteps is the number of steps between two checks of the clock: about 10 µs, unless
// the steps are slow.
const clockSteps = 64

// step is called by every function and every iteration of a range.
func (b *budget) step() { b.take(1) }

// take counts several steps.
func (b *budget) take(steps int) {
	if b.err != nil {
		panic(b.err)
	}
	if steps < 0 || steps > b.limits.Steps-b.steps {
		b.exceededf("the render exceeds %d steps (function calls and iterations of range)", b.limits.Steps)
	}
	b.steps += steps
	if b.steps < b.check {
		return
	}
	b.check = b.steps + clockSteps
	if b.ctx.Err() != nil {
		b.stop(context.Cause(b.ctx))
	}
	took := time.Since(b.began)
	if took > b.limits.Time {
		b.exceededf("the render takes longer than %s", b.limits.Time)
	}
	if b.steps > b.limits.LargeSteps || took > b.limits.LargeTime {
		b.large()
	}
}

// keep counts memory of a function's result.
func (b *budget) keep(bytes int) {
	if bytes > b.limits.Memory-b.memory {
		b.exceededf("the render exceeds %s of memory", mebibytes(b.limits.Memory))
	}
	b.memory += bytes
	if b.memory > b.limits.LargeMemory {
		b.large()
	}
}

// want is called before a value of this size is created or traversed. The size is a float,
// because numbers in values can be arbitrarily large.
func (b *budget) want(what string, bytes float64) {
	if bytes > float64(b.limits.Value) {
		b.exceededf("%s creates or reads more than %s at once", what, mebibytes(b.limits.Value))
	}
	// Traversing a megabyte takes about as long as this number of steps.
	b.take(1 + int(bytes)>>8)
}

// read takes steps for a text that a function reads.
func (b *budget) read(bytes int) {
	if bytes >= 4096 {
		b.take(bytes >> 10)
	}
}

// maxActions limits the nesting of actions in one text, because the parser is recursive.
const maxActions = 50_000

// perAction is the memory per byte of an action, because two characters can be a value.
const perAction = 64

// template is called before a template is parsed.
func (b *budget) template(text string) {
	if strings.Count(text, "{{") > maxActions {
		b.exceededf("a template contains more than %d actions", maxActions)
	}
	inActions := 0
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "{{")
		if !found {
			break
		}
		var action string
		action, rest, _ = strings.Cut(after, "}}")
		inActions += len(action)
	}
	b.readOnce("tpl", text)
	b.keep(len(text) + inActions*perAction)
}

// maxBrackets is the maximum nesting of brackets in a parsed text.
const maxBrackets = 10_000

// readOnce counts a text that is going to be parsed.
func (b *budget) readOnce(what, text string) {
	if len(text) > b.limits.Parse-b.parsed {
		b.exceededf("%s parses more than %s in total", what, mebibytes(b.limits.Parse))
	}
	b.parsed += len(text)
	b.take(len(text) >> 6)
}

// parse counts a text that is going to be parsed as YAML, JSON or TOML. The result can be
// a hundred times as large, because every comma can separate values.
func (b *budget) parse(what, text string, tokens int) {
	b.readOnce(what, text)
	b.keep(tokens * bytesOfToken)
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		if open > maxBrackets {
			b.exceededf("%s parses a text with more than %d nested brackets", what, maxBrackets)
		}
	}
}

// writer collects the output of a template. It returns errors, because text/template does
// not recover from panics of writers.
type writer struct {
	strings.Builder
	budget *budget
}

func (w *writer) Write(text []byte) (written int, err error) {
	defer func() {
		if recover() != nil {
			err = w.budget.err
		}
	}()
	if w.Len()+len(text) > w.budget.limits.Value {
		w.budget.exceededf("a template writes more than %s", mebibytes(w.budget.limits.Value))
	}
	w.budget.keep(len(text))
	return w.Builder.Write(text)
}

// enter is called before a nested template is executed, and leave after it, with the same
// depth.
func (b *budget) enter(depth int) {
	b.take(2)
	if b.depth+depth > b.limits.Depth {
		b.exceededf("template calls are nested more than %d deep (a tpl counts as %d, and so do %d nested actions)", b.limits.Depth, depthOfTpl, nestedActions*depthOfTpl)
	}
	b.depth += depth
}

func (b *budget) leave(depth int) { b.depth -= depth }

// large waits until no other render of the process is large. A render that waits releases
// the action's slot until it ends. So it never waits for a slot while it is the large
// render, which would delay large renders of other tenants.
func (b *budget) large() {
	if b.holds {
		return
	}
	select {
	case b.largeLock <- struct{}{}:
		b.holds = true
		return
	default:
	}
	began := time.Now()
	if b.lend != nil {
		b.resume = b.lend()
	}
	select {
	case b.largeLock <- struct{}{}:
		b.holds = true
		b.began = b.began.Add(time.Since(began))
	case <-b.ctx.Done():
		b.stop(context.Cause(b.ctx))
	}
}
