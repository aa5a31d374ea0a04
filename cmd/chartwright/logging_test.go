package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// counted is a value that notes how often it is written down.
type counted struct{ times *int }

func (c counted) MarshalLogObject(zapcore.ObjectEncoder) error {
	*c.times++
	return nil
}

// TestLazyCore: what a logger is given is in each of its lines, in order, and
// costs nothing where there is none.
func TestLazyCore(t *testing.T) {
	var out bytes.Buffer
	logger := zapr.NewLogger(ctrlzap.NewRaw(ctrlzap.WriteTo(&out), func(o *ctrlzap.Options) {
		o.ZapOpts = append(o.ZapOpts, zap.WrapCore(newLazyCore))
	}))
	times := 0
	pass := logger.WithValues("kind", "Web").WithValues("of", counted{&times})
	pass.V(1).Info("decided")
	if times != 0 || out.Len() > 0 {
		t.Fatalf("for a line that is not told, fields were written %d times: %s", times, &out)
	}
	pass.Info("first", "a", 1)
	pass.Info("second", "a", 2)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || times != 1 {
		t.Fatalf("%d lines, of which the fields were written %d times, are to be 2 and 1: %s", len(lines), times, &out)
	}
	for i, end := range []string{`"msg":"first","kind":"Web","of":{},"a":1}`, `"msg":"second","kind":"Web","of":{},"a":2}`} {
		if !strings.HasSuffix(lines[i], end) {
			t.Errorf("line %d is to end in %s: %s", i+1, end, lines[i])
		}
	}
}
