package render

import (
	"fmt"
	"reflect"
	"strconv"
)

// quickText returns a copy of a map for which package fmt returns the same text, but
// faster if the map contains the files of a chart. Some charts use their dot as a key by
// mistake, which formats each byte of each file as a number.
func quickText(value any) any {
	switch value.(type) {
	case fmt.Formatter, fmt.Stringer, error:
		return value
	}
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() != reflect.Map:
	case v.CanConvert(plainMap):
		from, _ := reflect.TypeAssert[map[string]any](v.Convert(plainMap))
		into := make(map[string]any, len(from))
		for key, inner := range from {
			into[key] = quickText(inner)
		}
		return into
	case v.CanConvert(mapOfFiles):
		from, _ := reflect.TypeAssert[map[string][]byte](v.Convert(mapOfFiles))
		into := make(map[string]quickBytes, len(from))
		for name, data := range from {
			into[name] = data
		}
		return into
	}
	return value
}

var mapOfFiles = reflect.TypeFor[map[string][]byte]()

// quickBytes has the text of []byte, for example [104 105].
type quickBytes []byte

// Format implements fmt.Formatter for %v.
func (q quickBytes) Format(to fmt.State, _ rune) {
	text := make([]byte, 0, 2+4*len(q))
	text = append(text, '[')
	for i, one := range q {
		if i > 0 {
			text = append(text, ' ')
		}
		text = append(text, decimals[one]...)
	}
	_, _ = to.Write(append(text, ']'))
}

// decimals holds the text of each byte.
var decimals = func() (all [256]string) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()
