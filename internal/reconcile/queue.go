package reconcile

import "slices"

// queue holds the tickets of one urgency. It serves one namespace after another,
// and within a namespace one kind after another. The zero value is ready.
type queue struct {
	namespaces rotation[*rotation[*tickets]]
}

// tickets wait in the order in which they came.
type tickets struct{ waiting []*ticket }

func (q *queue) push(t *ticket) {
	kinds := q.namespaces.get(t.turn.namespace, func() *rotation[*tickets] { return &rotation[*tickets]{} })
	line := kinds.get(t.turn.kind, func() *tickets { return &tickets{} })
	line.waiting = append(line.waiting, t)
}

// first returns the namespace to be served next, of those that may be.
func (q *queue) first(may func(namespace string) bool) (namespace string, found bool) {
	i := slices.IndexFunc(q.namespaces.order, may)
	if i < 0 {
		return "", false
	}
	return q.namespaces.order[i], true
}

// pop removes the next ticket of a namespace, nil if there is none, and puts the
// namespace and the ticket's kind last.
func (q *queue) pop(namespace string) *ticket {
	kinds, found := q.namespaces.lines[namespace]
	if !found {
		return nil
	}
	kind := kinds.order[0]
	line := kinds.lines[kind]
	next := line.waiting[0]
	line.waiting = line.waiting[1:]
	kinds.served(kind, len(line.waiting) > 0)
	q.namespaces.served(namespace, len(kinds.order) > 0)
	return next
}

// rotation holds lines of those who wait, by name, and the order in which the
// lines are served. The zero value is ready.
type rotation[T any] struct {
	order []string
	lines map[string]T
}

// get returns a line, and adds it at the end if it is missing.
func (r *rotation[T]) get(name string, add func() T) T {
	if r.lines == nil {
		r.lines = map[string]T{}
	}
	line, found := r.lines[name]
	if !found {
		line = add()
		r.lines[name] = line
		r.order = append(r.order, name)
	}
	return line
}

// served puts a line last, or removes it if nothing is left in it.
func (r *rotation[T]) served(name string, more bool) {
	i := slices.Index(r.order, name)
	r.order = slices.Delete(r.order, i, i+1)
	if more {
		r.order = append(r.order, name)
	} else {
		delete(r.lines, name)
	}
}
