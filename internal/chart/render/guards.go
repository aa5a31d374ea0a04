package render

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"text/template"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// guarded returns the template functions, with guards that use the budget.
func guarded(b *budget) template.FuncMap {
	all := b.instruments()
	for name, f := range functions {
		all[name] = wrapped(b, name, f)
	}
	guardComparisons(b, all)
	guardCounts(b, all)
	guardTexts(b, all)
	guardWalks(b, all)
	guardReads(b, all)
	guardSlow(b, all)
	return all
}

// of returns a function of sprig or Helm with its type. It panics if the type differs,
// which a test excludes.
func of[F any](name string) F {
	f, ok := functions[name].(F)
	if !ok {
		panic(fmt.Sprintf("internal error: the template function %s is a %T", name, functions[name]))
	}
	return f
}

// exact limits the magnitude of arguments of count. Larger ones could overflow.
const exact = 1 << 53

// count returns the number of numbers between two numbers.
func (b *budget) count(what string, start, stop, step int) float64 {
	for _, n := range []int{start, stop, step} {
		if n > exact || n < -exact {
			b.exceededf("%s got the number %d, which is too large", what, n)
		}
	}
	return math.Abs(float64(stop)-float64(start))/math.Max(1, math.Abs(float64(step))) + 1
}

// guardCounts guards functions whose result is as large as an argument says.
func guardCounts(b *budget, all template.FuncMap) {
	all["until"] = wrap1(b, of[func(int) []int]("until"), func(n int) { b.want("until", 8*b.count("until", 0, n, 1)) })
	all["untilStep"] = wrapAny(b, functions["untilStep"], func(n []reflect.Value) {
		b.want("untilStep", 8*b.count("untilStep", int(n[0].Int()), int(n[1].Int()), int(n[2].Int())))
	})
	all["seq"] = wrapAll(b, of[func(...int) string]("seq"), func(n []int) {
		switch len(n) {
		case 1:
			b.want("seq", 20*b.count("seq", 1, n[0], 1))
		case 2:
			b.want("seq", 20*b.count("seq", n[0], n[1], 1))
		case 3:
			b.want("seq", 20*b.count("seq", n[0], n[2], n[1]))
		}
	})
	all["repeat"] = wrap2(b, of[func(int, string) string]("repeat"), func(n int, text string) { b.want("repeat", product(n, len(text))) })
	for _, name := range []string{"indent", "nindent"} {
		all[name] = wrap2(b, of[func(int, string) string](name), func(spaces int, text string) {
			b.want(name, float64(len(text))+product(spaces, occurrences("\n", text)))
		})
	}
	for _, name := range []string{"randAlpha", "randAlphaNum", "randAscii", "randNumeric"} {
		all[name] = wrap1(b, of[func(int) string](name), func(n int) { b.want(name, 64*math.Abs(float64(n))) })
	}
	all["randBytes"] = wrapAny(b, functions["randBytes"], func(given []reflect.Value) { b.want("randBytes", 2*math.Abs(float64(given[0].Int()))) })
	// wrap breaks a text at most twice every n characters.
	all["wrap"] = wrap2(b, of[func(int, string) string]("wrap"), func(_ int, text string) { b.want("wrap", 2*float64(len(text))) })
	all["wrapWith"] = wrapAny(b, functions["wrapWith"], func(given []reflect.Value) {
		n, sep, text := int(given[0].Int()), given[1].Len(), given[2].Len()
		b.want("wrapWith", float64(text)+product(2*text/max(1, n)+1, sep))
	})
	all["printf"] = func(format string, args ...any) string {
		b.want("printf", b.formatted(format, args))
		text := fmt.Sprintf(format, args...)
		b.result(text)
		return text
	}
}

// verb matches a verb of a format, with its width and precision.
var verb = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?(\d+|\*)?(?:\.(\[\d+\])?(\d+|\*)?)?(\[\d+\])?`)

// formatted returns the maximum size of a formatted text: each verb writes one argument,
// with a width of at most a million.
func (b *budget) formatted(format string, args []any) float64 {
	total, largest, values := float64(len(format)), 0.0, 1.0
	for _, arg := range args {
		bytes, number := b.weigh("printf", arg)
		// Arguments without a verb are written, too.
		total += float64(bytes)
		largest, values = max(largest, float64(bytes)), max(values, float64(number))
	}
	if strings.Count(format, "%") <= 4 && !strings.ContainsAny(format, "*0123456789") {
		return total + 4*largest
	}
	for _, found := range verb.FindAllStringSubmatch(format, -1) {
		total += largest
		for _, size := range []string{found[2], found[4]} {
			wide := 0.0
			switch {
			case size == "*" || len(size) > 6:
				wide = 1e6
			case size != "":
				_, _ = fmt.Sscan(size, &wide)
			}
			// The width applies to each item of a list, and each key and value of a map.
			total += 2 * values * wide
		}
	}
	return total
}

// guardTexts guards functions that insert a text into another one repeatedly, and
// searches.
func guardTexts(b *budget, all template.FuncMap) {
	all["replace"] = wrapAny(b, functions["replace"], func(given []reflect.Value) {
		old, with, text := given[0].String(), given[1].String(), given[2].String()
		b.want("replace", float64(len(text))+product(occurrences(old, text), len(with)))
	})
	for _, name := range []string{"regexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAll", "mustRegexReplaceAllLiteral"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) {
			b.replaced(name, given[0].String(), given[1].String(), given[2].String())
		})
	}
	for _, name := range []string{"regexFindAll", "regexSplit", "mustRegexFindAll", "mustRegexSplit"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) {
			b.match(given[0].String(), given[1].String())
			b.want(name, 24*float64(given[1].Len()+1))
		})
	}
	for _, name := range []string{"regexMatch", "mustRegexMatch", "regexFind", "mustRegexFind"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) { b.match(given[0].String(), given[1].String()) })
	}
	for _, name := range []string{"trimAll", "trimall"} {
		// Each character of the text is searched in the cutset.
		all[name] = wrap2(b, of[func(string, string) string](name), func(signs, text string) { b.compareAll(len(signs), len(text), 1024) })
	}
	for name, perPart := range map[string]float64{"splitList": 16, "split": 64, "splitn": 64} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) {
			sep, text := given[0].String(), given[len(given)-1].String()
			b.want(name, float64(len(text))+perPart*float64(occurrences(sep, text)))
		})
	}
	all["join"] = wrap2(b, of[func(string, any) string]("join"), func(sep string, parts any) {
		bytes, number := b.weigh("join", parts)
		b.want("join", float64(bytes)+product(number, len(sep)))
	})
}

// compareAll takes the steps for comparing all values with all others, with aStep
// comparisons per step.
func (b *budget) compareAll(values, others, aStep int) {
	b.take(int(min(product(values, others)/float64(aStep), math.MaxInt32)))
}

// mostFound is the maximum number of matches that are counted. The positions take more
// memory than a short replacement.
const mostFound = 100_000

// replaced is called before the matches of a regular expression are replaced. Each $ of
// the replacement can insert a match, which is at most the whole text.
func (b *budget) replaced(what, pattern, text, with string) {
	b.match(pattern, text)
	most := float64(len(text)) + product(len(text)+1, len(with)) + product(strings.Count(with, "$"), len(text))
	if most <= float64(b.limits.Value) {
		b.want(what, most)
		return
	}
	found, err := regexp.Compile(pattern)
	if err != nil {
		// The function returns the error.
		return
	}
	times := len(found.FindAllStringIndex(text, mostFound))
	if times == mostFound {
		times = len(text) + 1
	}
	b.want(what, float64(len(text))+product(times, len(with))+product(strings.Count(with, "$"), len(text)))
}

// guardWalks guards functions that traverse a value.
func guardWalks(b *budget, all template.FuncMap) {
	for _, name := range []string{"cat", "quote", "squote"} {
		all[name] = wrapAll(b, of[func(...any) string](name), func(values []any) { b.weigh(name, values...) })
	}
	for name, f := range map[string]func(...any) string{
		"print": fmt.Sprint, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	} {
		all[name] = wrapAll(b, f, func(values []any) { b.weigh(name, values...) })
	}
	all["toString"] = wrap1(b, of[func(any) string]("toString"), func(value any) { b.weigh("toString", value) })
	for name, by := range map[string]weigher{
		"toJson": {}, "toRawJson": {}, "toYaml": {indent: 2}, "toYamlPretty": {indent: 2}, "toPrettyJson": {indent: 2},
		"toToml": {indent: 2, paths: true},
	} {
		all[name] = wrap1(b, of[func(any) string](name), func(value any) { b.encodeAs(name, by, value) })
	}
	for name, by := range map[string]weigher{
		"mustToJson": {}, "mustToRawJson": {}, "mustToPrettyJson": {indent: 2}, "deepCopy": {}, "mustDeepCopy": {}, "toStrings": {}, "sortAlpha": {},
	} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) { b.encodeAs(name, by, given[0].Interface()) })
	}
	for _, name := range []string{"merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) {
			b.weigh(name, given[0].Interface())
			b.encodeAs(name, weigher{}, given[1].Interface())
		})
	}
	for _, name := range []string{"deepEqual", "has", "mustHas"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) { b.weigh(name, given[0].Interface(), given[1].Interface()) })
	}
	// These functions compare all items with all others.
	for _, name := range []string{"uniq", "mustUniq", "without", "mustWithout"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) {
			_, number := b.weigh(name, given[0].Interface())
			others := number
			if len(given) > 1 {
				_, others = b.weigh(name, given[1].Interface())
			}
			b.compareAll(number, others, 16)
		})
	}
	all["concat"] = wrapAll(b, of[func(...any) any]("concat"), func(lists []any) {
		for _, list := range lists {
			if v := reflect.ValueOf(list); v.Kind() == reflect.Slice {
				b.keep(16 * v.Len())
			}
		}
	})
	for _, name := range []string{"slice", "mustSlice"} {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) { b.weigh(name, given[1].Interface()) })
	}
	// Keys that are not strings are formatted.
	all["dict"] = wrapAll(b, of[func(...any) map[string]any]("dict"), func(values []any) {
		for i := 0; i < len(values); i += 2 {
			b.weigh("dict", values[i])
		}
	})
	// set returns its argument, which must not be counted again.
	set := of[func(map[string]any, string, any) map[string]any]("set")
	all["set"] = func(into map[string]any, key string, value any) map[string]any {
		b.step()
		b.keep(64)
		return set(into, key, value)
	}
}

// encodeAs is called before a value is encoded or copied.
func (b *budget) encodeAs(what string, by weigher, value any) {
	_, number := b.weighBy(by, what, value)
	b.keep(number * bytesOfToken / 4)
}

// guardReads guards functions that parse a text.
func guardReads(b *budget, all template.FuncMap) {
	before := map[string]func(text string){
		"fromJson": func(text string) { b.parse("fromJson", text, boundedyaml.Tokens(text)) },
		"fromYaml": func(text string) {
			b.parse("fromYaml", text, boundedyaml.Tokens(text))
			b.aliases("fromYaml", text)
		},
		// Each part of a dotted key becomes a table.
		"fromToml": func(text string) { b.parse("fromToml", text, boundedyaml.Tokens(text)+strings.Count(text, ".")) },
	}
	for name, before := range before {
		all[name] = wrap1(b, of[func(string) map[string]any](name), before)
	}
	for _, name := range []string{"fromYaml", "fromJson"} {
		all[name+"Array"] = wrap1(b, of[func(string) []any](name+"Array"), before[name])
	}
	all["mustFromJson"] = wrapAny(b, functions["mustFromJson"], func(given []reflect.Value) { before["fromJson"](given[0].String()) })
}

// aliases counts the values of the aliases in a YAML text.
func (b *budget) aliases(what, text string) {
	added, err := boundedyaml.Aliased(text)
	if err != nil {
		b.exceededf("%s parses a text with aliases (&name, *name) that is not valid YAML", what)
	}
	b.keep(added.Values*bytesOfToken + added.Bytes)
}

// slow holds the functions that take as long as thousands of others.
var slow = []string{
	"bcrypt", "htpasswd", "derivePassword", "genPrivateKey", "genCA", "genCAWithKey", "buildCustomCert",
	"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
}

// guardSlow makes each call of a slow function check the clock, and makes the render the
// large one, because the memory that these functions use, such as 32 MiB for
// derivePassword, is not counted.
func guardSlow(b *budget, all template.FuncMap) {
	for _, name := range slow {
		all[name] = wrapAny(b, functions[name], func(given []reflect.Value) {
			b.take(clockSteps)
			b.large()
			b.weighArguments(name, given)
		})
	}
}
