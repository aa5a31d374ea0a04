package helm

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// trouble is a transport that causes an error at the request with a given number.
type trouble struct {
	next  http.RoundTripper
	armed atomic.Pointer[disturbance]
}

// disturbance describes the error. The zero value only counts requests.
type disturbance struct {
	// at is the number of the request, starting with 1.
	at int64
	// before and after are called around the request. Later requests succeed unless dead
	// is set.
	before, after func()
	dead          bool
	// hang delays the response until the context of the request ends, except for
	// updates, which may take longer.
	hang bool
	// fails selects the requests that fail, regardless of their number.
	fails func(*http.Request) bool
	// answer, if not nil, answers each request.
	answer func(request *http.Request, next http.RoundTripper) (*http.Response, error)
	seen   atomic.Int64

	mu       sync.Mutex
	requests []string
}

func (p *disturbance) log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// dryRun is the method of dry runs in the log.
const dryRun = "DRYRUN"

type deadError struct{}

func (deadError) Error() string { return "the process is dead" }

// RoundTrip sends the request with the configured error.
func (tr *trouble) RoundTrip(request *http.Request) (*http.Response, error) {
	p := tr.armed.Load()
	if p == nil {
		return tr.next.RoundTrip(request)
	}
	number := p.seen.Add(1)
	p.mu.Lock()
	method := request.Method
	if request.URL.Query().Has("dryRun") {
		method = dryRun
	}
	p.requests = append(p.requests, method+" "+request.URL.Path)
	p.mu.Unlock()
	switch {
	case p.answer != nil:
		return p.answer(request, tr.next)
	case p.dead && number >= p.at, p.fails != nil && p.fails(request):
		return nil, deadError{}
	case number != p.at:
		return tr.next.RoundTrip(request)
	}
	if p.before != nil {
		p.before()
	}
	if p.hang && request.Method != http.MethodPut {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	response, err := tr.next.RoundTrip(request)
	if p.after != nil {
		p.after()
	}
	return response, err
}
