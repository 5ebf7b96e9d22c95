// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger returns a logger that writes one line for each decision.
func newLogger(format, level string, w io.Writer) (logr.Logger, error) {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "console":
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format is %q: want json or console", format)
	}
	minimum, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level is %q: want debug, info or error", level)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), minimum)
	return zapr.NewLogger(zap.New(core)), nil
}
