package main

import "go.uber.org/zap/zapcore"

// lazyCore encodes the fields of a logger only when it writes a message. Each
// reconciliation creates two loggers with fields, and most of them write nothing.
type lazyCore struct{ zapcore.Core }

func newLazyCore(core zapcore.Core) zapcore.Core { return lazyCore{core} }

// With adds fields without encoding them.
func (c lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return lazyCore{zapcore.NewLazyWith(c.Core, fields)}
}
