package main

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// unhurried has what a logger is given to tell with each line written down when
// there is a line. Each pass over a custom resource makes two such loggers, and
// most have nothing to tell.
func unhurried() zap.Option {
	return zap.WrapCore(func(core zapcore.Core) zapcore.Core { return lazyCore{core} })
}

type lazyCore struct{ zapcore.Core }

// With keeps the fields as they are.
func (c lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return lazyCore{zapcore.NewLazyWith(c.Core, fields)}
}
