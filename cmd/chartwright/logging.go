package main

import "go.uber.org/zap/zapcore"

// lazyCore encodes the values that a logger adds to its lines only when it writes a
// line. Each reconcile creates two loggers with values, and most write no line.
type lazyCore struct{ zapcore.Core }

func newLazyCore(core zapcore.Core) zapcore.Core { return lazyCore{core} }

// With keeps the fields as they are.
func (c lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return lazyCore{zapcore.NewLazyWith(c.Core, fields)}
}
