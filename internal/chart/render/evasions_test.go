package render

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// texts are values with a method YAML, like the values of Helm.
type texts map[string]any

// YAML returns the values as YAML.
func (v texts) YAML() (string, error) {
	data, err := yaml.Marshal(v)
	return string(data), err
}

// doubled sets $x to a small value whose text has 2⁶⁰ words, and endless sets it to a
// recursive value.
const (
	doubled = `{{ $x := list "x" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}`
	endless = `{{ $x := dict }}{{ $_ := set $x "x" $x }}`
	// wide sets $x to a map of 20000 keys, and nested nests it in 950 other maps.
	wide   = `{{ $x := dict }}{{ range $i, $_ := until 20000 }}{{ $_ := set $x (print $i) $i }}{{ end }}`
	nested = wide + `{{ range 950 }}{{ $x = dict "a" $x }}{{ end }}`
)

// These bombs evade limits on the sizes of arguments and results.
func init() {
	bombs = append(bombs, []bomb{
		{"a recursive value, in the error of a cast", endless + `{{ int $x }}`, nil, "contains itself"},
		{"a recursive value, in the error of a sum", endless + `{{ add 1 $x }}`, nil, "contains itself"},
		{"a recursive value, as a number", endless + `{{ toDecimal $x }}`, nil, "contains itself"},
		{"a recursive value, as a key", endless + `{{ dict $x 1 }}`, nil, "contains itself"},
		{"a recursive value, in the error of eq", endless + `{{ eq $x $x }}`, nil, "contains itself"},
		{"a recursive value, in the error of ne", endless + `{{ ne $x $x }}`, nil, "contains itself"},
		{"a recursive value, in the error of a certificate", endless + `{{ genCA "a" 1 | genSignedCert "a" (list $x) nil 1 }}`, nil, "contains itself"},
		{"a doubled value, in the error of a cast", doubled + `{{ int $x }}`, nil, "int creates or reads"},
		{"a doubled value, in the error of eq", doubled + `{{ eq $x $x }}`, nil, "eq creates or reads"},
		{"a doubled value, as a key", doubled + `{{ dict $x 1 }}`, nil, "dict creates or reads"},
		{"a doubled value, by a method", doubled + `{{ $_ := set .v "x" $x }}{{ .v.YAML }}`, map[string]any{"v": texts{}}, "creates or reads"},
		{"a doubled value, by a method of a variable", doubled + `{{ $v := .v }}{{ $_ := set $v "x" $x }}{{ len $v.YAML }}`, map[string]any{"v": texts{}}, "creates or reads"},
		{"a doubled value, by a method of dot", doubled + `{{ with .v }}{{ $_ := set . "x" $x }}{{ upper .YAML }}{{ end }}`, map[string]any{"v": texts{"y": 1}}, "creates or reads"},
		{"strings created by a method", `{{ $b := repeat 1000000 "x" }}{{ $l := list }}{{ range 1000 }}{{ $l = append $l (now.Format $b) }}{{ end }}`, nil, "128 MiB of memory"},
		{"strings created by a method of a variable", `{{ $b := repeat 1000000 "x" }}{{ $l := list }}{{ $n := now }}{{ range 1000 }}{{ $l = append $l ($b | $n.Format) }}{{ end }}`, nil, "128 MiB of memory"},
		{"certificates of long names", `{{ $b := repeat 1000000 "x" }}{{ $l := list }}{{ $k := genPrivateKey "ecdsa" }}{{ range 1000 }}{{ $l = append $l (genCAWithKey $b 1 $k) }}{{ end }}`, nil, "128 MiB of memory"},
		{"a wide printf of a list", `{{ printf "%9999d" (until 100000) }}`, nil, "printf creates or reads"},
		{"a wide printf of a dictionary", wide + `{{ printf "%9999v" $x }}`, nil, "printf creates or reads"},
		{"a printf of too much", `{{ $b := repeat 4000000 "x" }}{{ printf "%s" $b $b $b $b $b }}`, nil, "printf creates or reads"},
		{"a deeply nested map, as YAML", nested + `{{ toYaml $x | len }}`, nil, "toYaml creates or reads"},
		{"a deeply nested map, as JSON", nested + `{{ toPrettyJson $x | len }}`, nil, "toPrettyJson creates or reads"},
		{"a deeply nested string of many lines, as YAML", `{{ $x := repeat 100000 "x\n" }}{{ range 900 }}{{ $x = dict "a" $x }}{{ end }}{{ toYaml $x | len }}`, nil, "toYaml creates or reads"},
		{"long names of tables", `{{ $x := dict }}{{ $k := repeat 10000 "k" }}{{ range 500 }}{{ $x = dict $k $x }}{{ end }}{{ toToml $x | len }}`, nil, "toToml creates or reads"},
		{"ranges over a dictionary, nested", strings.Replace(wide, "20000", "8000", 1) + `{{ tpl (print (repeat 300 "{{ range . }}") (repeat 300 "{{ end }}")) $x }}`, nil, "the render exceeds"},
		{"a template of many arguments", `{{ tpl (print "{{ list " (repeat 3000000 "1 ") "}}") . }}`, nil, "128 MiB of memory"},
		{"templates of nested actions, nested", "{{ tpl .x . }}", map[string]any{"x": strings.Repeat("{{range 1}}", 10_000) + "{{tpl .x .}}" + strings.Repeat("{{end}}", 10_000)}, "more than 1000 deep"},
		{"templates of nested brackets, nested", "{{ tpl .x . }}", map[string]any{"x": "{{" + strings.Repeat("(", 9000) + "tpl .x ." + strings.Repeat(")", 9000) + "}}"}, "more than 1000 deep"},
		{"a regular expression that repeats", `{{ regexMatch "^((a?b?c?d?e?f?){31}){31}$" (repeat 100000 "abcdef") }}`, nil, "steps"},
		{"a regular expression with many matches", `{{ regexReplaceAll "x" (repeat 16000000 "x") "yy" }}`, nil, "regexReplaceAll creates or reads"},
		{"a trim with a long cutset", `{{ trimAll (print (repeat 5000000 "à") "é") (repeat 1000000 "é") }}`, nil, "steps"},
		{"comparisons of long strings", `{{ $a := repeat 16000000 "x" }}{{ $b := print (repeat 15999999 "x") "y" }}{{ $c := print (repeat 15999999 "x") "y" }}{{ eq $a $b $c $b $c $b $c $b $c $b $c $b $c $b $c $b $c $b $c $b }}`, nil, "steps"},
		{"digests of long strings", `{{ $a := repeat 16000000 "x" }}{{ range 100 }}{{ sha512sum $a }}{{ end }}`, nil, "steps"},
		{"aliases of YAML", "{{ fromYaml .x | len }}", map[string]any{"x": aliases}, "128 MiB of memory"},
		{"aliases of YAML, in parts", `{{ $l := list }}{{ range 1000 }}{{ $l = append $l (fromYaml $.x) }}{{ end }}`, map[string]any{"x": fewAliases}, "128 MiB of memory"},
		{"aliases in a manifest", anchors(5), nil, "lines, keys and list items"},
		{"aliases of a long string", `{{ $s := repeat 2000000 "x" }}{{ $y := printf "a: &a %s\nb: [%s]" $s (repeat 60000 "*a,") }}{{ fromYaml $y | len }}`, nil, "128 MiB of memory"},
		{"aliases of a long string in a manifest", `a: &a {{ repeat 2000000 "x" }}{{ "\n" }}b: [{{ repeat 60000 "*a," }}]`, nil, "output exceeds 16 MiB"},
		{"aliases in invalid YAML", `{{ fromYaml "a: &a [*a" }}`, nil, "is not valid YAML"},
		{"items of one line of YAML", `{{ fromYaml .x | len }}`, map[string]any{"x": "a:\n" + strings.Repeat(" "+strings.Repeat("- ", 5000)+"x\n", 500)}, "128 MiB of memory"},
		{"dotted keys of TOML", `{{ fromToml .x | len }}`, map[string]any{"x": strings.Repeat("a.", 1_000_000) + "a = 1"}, "128 MiB of memory"},
	}...)
}

// aliases is a YAML text of a few lines with 10⁹ values, and fewAliases one with 10⁵.
var aliases, fewAliases = anchors(8), anchors(4)

func anchors(levels int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "a0: &a0 [%sx]\n", strings.Repeat("x, ", 9))
	for i := range levels {
		fmt.Fprintf(&text, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return text.String()
}
