package render

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"text/template"
)

// Reused holds results of slow template functions, such as certificates, so that equal
// calls of several renders return the same result. It is only for renders whose objects
// are not created in a cluster, unless Random is set. It is safe for concurrent use.
type Reused struct {
	// Random includes all functions with random results. The first of several equal calls
	// in a render returns the result of the first one in an earlier render, and so on. Each
	// result is thus used once in a render.
	Random bool

	mu      sync.Mutex
	results map[string][]reflect.Value
}

// maxReused is the maximum number of results in a Reused of slow functions.
const maxReused = 256

// random holds the functions, in addition to slow, whose results are random or depend on the
// time.
var random = []string{
	"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "uuidv4", "shuffle", "encryptAES",
	"now", "ago",
}

// functions returns template functions for one render. Some reuse results.
func (r *Reused) functions(all template.FuncMap) template.FuncMap {
	reusing := maps.Clone(all)
	calls := map[string]int{}
	for _, name := range slow {
		reusing[name] = r.function(name, all[name], calls)
	}
	for _, name := range random {
		if r.Random {
			reusing[name] = r.function(name, all[name], calls)
		}
	}
	return reusing
}

func (r *Reused) function(name string, f any, calls map[string]int) any {
	called := reflect.ValueOf(f)
	call := caller(called)
	return reflect.MakeFunc(called.Type(), func(arguments []reflect.Value) []reflect.Value {
		var key strings.Builder
		key.WriteString(name)
		for _, argument := range arguments {
			fmt.Fprintf(&key, " %#v", argument)
		}
		if r.Random {
			calls[key.String()]++
			fmt.Fprintf(&key, " %d", calls[key.String()])
		}
		if known := r.result(key.String()); known != nil {
			return known
		}
		results := call(arguments)
		if last := results[len(results)-1]; last.Type() != errorType || last.IsNil() {
			r.add(key.String(), results)
		}
		return results
	}).Interface()
}

var errorType = reflect.TypeFor[error]()

func (r *Reused) result(key string) []reflect.Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results[key]
}

func (r *Reused) add(key string, results []reflect.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.results == nil || len(r.results) >= maxReused && !r.Random {
		r.results = map[string][]reflect.Value{}
	}
	r.results[key] = results
}
