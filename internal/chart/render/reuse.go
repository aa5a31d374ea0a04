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
// are not created in a cluster. It is safe for concurrent use.
type Reused struct {
	mu      sync.Mutex
	results map[string][]reflect.Value
}

// maxReused is the maximum number of results in a Reused.
const maxReused = 256

// functions returns template functions. The slow ones reuse results.
func (r *Reused) functions(all template.FuncMap) template.FuncMap {
	reusing := maps.Clone(all)
	for _, name := range slow {
		reusing[name] = r.function(name, all[name])
	}
	return reusing
}

func (r *Reused) function(name string, f any) any {
	called := reflect.ValueOf(f)
	call := caller(called)
	return reflect.MakeFunc(called.Type(), func(arguments []reflect.Value) []reflect.Value {
		var key strings.Builder
		key.WriteString(name)
		for _, argument := range arguments {
			fmt.Fprintf(&key, " %#v", argument)
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
	if r.results == nil || len(r.results) >= maxReused {
		r.results = map[string][]reflect.Value{}
	}
	r.results[key] = results
}
