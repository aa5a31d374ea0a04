package chart

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// parts are methods that return an existing part of their value or a small result.
var parts = []string{
	"GetBytes", "AsMap", "Table", "PathValue", "GitVersion", "Original", "Prerelease", "Metadata", "Zone", "ISOWeek", "Date", "Clock",
}

// Package render must count the result of every method that templates can call and that can
// return a large result.
func TestMethods_WithLargeResultsAreCounted(t *testing.T) {
	values := []any{time.Now(), time.Second, time.UTC, &semver.Version{}, engine.Values{}, engine.VersionSet{}, engine.KubeVersion{}, &engine.Metadata{}, engine.Maintainer{}, engine.Dependency{}}
	files, err := takeFiles(nil)
	if err != nil || files == nil {
		t.Fatal(err, files)
	}
	values = append(values, files)
	for _, value := range values {
		for method := range reflect.TypeOf(value).Methods() {
			known := render.Makes(method.Name) || slices.Contains(parts, method.Name)
			if method.Type.NumOut() == 0 || known {
				continue
			}
			switch method.Type.Out(0).Kind() {
			case reflect.String, reflect.Slice, reflect.Map, reflect.Interface:
				if method.Type.Out(0) != reflect.TypeFor[error]() {
					t.Errorf("%s is neither counted by package render nor in parts", fmt.Sprintf("%T.%s", value, method.Name))
				}
			}
		}
	}
}
