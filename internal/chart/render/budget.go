package render

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// budget is what is left of the limits in one render. Its methods panic with
// what has ended the render, since the functions of a template may not all
// return errors; text/template makes an error of a panic in any of them.
type budget struct {
	ctx    context.Context
	limits Limits
	// alone is held by the one render that is large.
	alone chan struct{}
	holds bool
	// lend is Options.Lend. resume is its result while the slot is lent.
	lend   func() (resume func())
	resume func()

	steps, memory, parsed, depth int

	// began is when the render did; what it waited is added.
	began time.Time
	// look is the step at which the clock is looked at next.
	look int
	// file is being rendered.
	file string
	// err is why the render has ended; whatever is called after that fails
	// likewise.
	err error
}

func newBudget(ctx context.Context, limits Limits, alone chan struct{}) *budget {
	return &budget{ctx: ctx, limits: limits, alone: alone, began: time.Now()}
}

// end gives back what the render holds, and then takes the action's slot again.
func (b *budget) end() {
	if b.holds {
		<-b.alone
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

// clockSteps is how many steps are taken between two looks at the clock: some
// hundredth of a millisecond's, if they are not slow ones.
const clockSteps = 64

// step is taken by every function and every turn of a range.
func (b *budget) step() { b.take(1) }

// take is for what is worth several steps.
func (b *budget) take(steps int) {
	if b.err != nil {
		panic(b.err)
	}
	if steps < 0 || steps > b.limits.Steps-b.steps {
		b.exceededf("it takes more than %d steps (calls of functions and turns of range)", b.limits.Steps)
	}
	b.steps += steps
	if b.steps < b.look {
		return
	}
	b.look = b.steps + clockSteps
	if b.ctx.Err() != nil {
		b.stop(context.Cause(b.ctx))
	}
	took := time.Since(b.began)
	if took > b.limits.Time {
		b.exceededf("it takes longer than %s", b.limits.Time)
	}
	if b.steps > b.limits.LargeSteps || took > b.limits.LargeTime {
		b.large()
	}
}

// keep counts memory that a function has given, or will.
func (b *budget) keep(bytes int) {
	if bytes > b.limits.Memory-b.memory {
		b.exceededf("it takes more than %s of memory", mebibytes(b.limits.Memory))
	}
	b.memory += bytes
	if b.memory > b.limits.LargeMemory {
		b.large()
	}
}

// want is called before something of that size is made, or walked through. It
// is a float, since numbers of the values may be of any size.
func (b *budget) want(what string, bytes float64) {
	if bytes > float64(b.limits.Value) {
		b.exceededf("%s makes or takes more than %s at once", what, mebibytes(b.limits.Value))
	}
	// A megabyte walked through takes about as long as this many steps.
	b.take(1 + int(bytes)>>8)
}

// read takes the steps for a text that a function goes through.
func (b *budget) read(bytes int) {
	if bytes >= 4096 {
		b.take(bytes >> 10)
	}
}

// maxActions bounds how deeply the actions of one text can be nested: the
// parser calls itself for each.
const maxActions = 50_000

// perAction is what is made of a byte in an action: a sign and a blank may
// stand for a value.
const perAction = 64

// template is called before a template is parsed.
func (b *budget) template(text string) {
	if strings.Count(text, "{{") > maxActions {
		b.exceededf("a template has more than %d actions", maxActions)
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

// maxBrackets is how many brackets may be open in a text that is read.
const maxBrackets = 10_000

// readOnce counts a text that is going to be read.
func (b *budget) readOnce(what, text string) {
	if len(text) > b.limits.Parse-b.parsed {
		b.exceededf("%s reads more than %s, all in all", what, mebibytes(b.limits.Parse))
	}
	b.parsed += len(text)
	b.take(len(text) >> 6)
}

// parse counts a text of YAML, JSON or TOML that is going to be read. What is
// made of it may be a hundred times as large, as every comma may stand for a
// value.
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
			b.exceededf("%s reads a text with more than %d open brackets", what, maxBrackets)
		}
	}
}

// writer takes what a template writes. It returns errors, for text/template
// lets a panic through here.
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
		w.budget.exceededf("it writes more than %s in one template", mebibytes(w.budget.limits.Value))
	}
	w.budget.keep(len(text))
	return w.Builder.Write(text)
}

// enter begins a template that another one calls, and leave ends it. How deep
// it counts is the same for both.
func (b *budget) enter(depth int) {
	b.take(2)
	if b.depth+depth > b.limits.Depth {
		b.exceededf("templates call each other more than %d deep (a tpl counts as %d, and so do %d actions within each other)", b.limits.Depth, depthOfTpl, nestedActions*depthOfTpl)
	}
	b.depth += depth
}

func (b *budget) leave(depth int) { b.depth -= depth }

// large waits until no other render of the process is large. A render that waits
// lends the action's slot until it ends: it never waits for a slot while it is
// the large one, which would delay large renders of other tenants by the slots of
// this one.
func (b *budget) large() {
	if b.holds {
		return
	}
	select {
	case b.alone <- struct{}{}:
		b.holds = true
		return
	default:
	}
	began := time.Now()
	if b.lend != nil {
		b.resume = b.lend()
	}
	select {
	case b.alone <- struct{}{}:
		b.holds = true
		b.began = b.began.Add(time.Since(began))
	case <-b.ctx.Done():
		b.stop(context.Cause(b.ctx))
	}
}
