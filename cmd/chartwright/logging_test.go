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

// counted is a value that counts how often it is encoded.
type counted struct{ times *int }

func (c counted) MarshalLogObject(zapcore.ObjectEncoder) error {
	*c.times++
	return nil
}

func TestLazyCore_EncodesFieldsOnFirstMessage(t *testing.T) {
	var out bytes.Buffer
	logger := zapr.NewLogger(ctrlzap.NewRaw(ctrlzap.WriteTo(&out), func(o *ctrlzap.Options) {
		o.ZapOpts = append(o.ZapOpts, zap.WrapCore(newLazyCore))
	}))
	times := 0
	derived := logger.WithValues("kind", "Web").WithValues("of", counted{&times})
	derived.V(1).Info("decided")
	if times != 0 || out.Len() > 0 {
		t.Fatalf("fields were encoded %d times for a message below the level: %s", times, &out)
	}
	derived.Info("first", "a", 1)
	derived.Info("second", "a", 2)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || times != 1 {
		t.Fatalf("%d messages, fields encoded %d times; want 2 and 1: %s", len(lines), times, &out)
	}
	for i, end := range []string{`"msg":"first","kind":"Web","of":{},"a":1}`, `"msg":"second","kind":"Web","of":{},"a":2}`} {
		if !strings.HasSuffix(lines[i], end) {
			t.Errorf("message %d does not end in %s: %s", i+1, end, lines[i])
		}
	}
}
